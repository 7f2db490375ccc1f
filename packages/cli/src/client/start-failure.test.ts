import { describe, expect, it } from 'vitest'
import { failureIn, isDirectoryInUse } from './start-failure.js'

describe('what a start that failed says', () => {
  it.each([
    {
      when: 'it named an error and the next move',
      output: 'corral: cannot open the database in /d/api (file is not a database)\nhint: Move it aside.\n',
      message: 'the platform could not start: cannot open the database in /d/api (file is not a database)',
      hint: 'Move it aside.',
    },
    {
      when: 'it named an error only',
      output: '{"level":"warn","message":"slow"}\n\u001b[31mcorral:\u001b[39m no room\n',
      message: 'the platform could not start: no room',
      hint: 'See what is wrong with `corral doctor`.',
    },
    {
      when: 'another start had the directory and failed',
      output: 'corral: the disk is full\nhint: Free space.\ncorral: /d is in use by process 7 (http://x)\n',
      message: 'the platform could not start: the disk is full',
      hint: 'Free space.',
    },
    {
      when: 'it was killed without a word',
      output: '',
      message: 'the platform ended with SIGKILL while starting',
      hint: 'See /d/platform.log, or what `corral doctor` finds.',
    },
    {
      when: 'the disk is too full for its words',
      output: '',
      freeBytes: 0,
      message: 'the platform could not start: the disk of /d is full',
      hint: 'Free space on that disk, or start with another --data-dir.',
    },
    {
      when: 'it named an error only, and the directory is not the usual one',
      output: 'corral: no room\n',
      dataDir: '/a b',
      message: 'the platform could not start: no room',
      hint: "See what is wrong with `corral doctor --data-dir '/a b'`.",
    },
  ])('when $when', ({ output, freeBytes = 1e9, dataDir, message, hint }) => {
    expect(failureIn(output, 'SIGKILL', { logPath: '/d/platform.log', freeBytes, dataDir })).toMatchObject({
      message,
      hint,
      exitCode: 3,
    })
  })

  it('knows the start that only came second', () => {
    expect(isDirectoryInUse('corral: /a b is in use by process 7 (http://x)\nhint: Use it.\n')).toBe(true)
    expect(isDirectoryInUse('corral: /a b is in use\n')).toBe(true)
    expect(isDirectoryInUse('corral: port 7000 is in use by something\n')).toBe(false)
  })
})
