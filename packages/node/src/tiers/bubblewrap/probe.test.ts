import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isHidden, remedyFor } from './probe.js'

let scratch: string
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'corral-probe-'))
})
afterEach(() => rmSync(scratch, { recursive: true, force: true }))

const succeeds = (command: string): boolean => spawnSync('/bin/sh', ['-c', command]).status === 0

it.each(["o'brien", 'two words', '"$HOME"', "';true;'", 'äöü'])(
  'the probe looks for the file of the host below %j, whatever a shell makes of that name',
  (name) => {
    const marker = join(scratch, name, 'marker')
    expect(succeeds(isHidden(marker))).toBe(true)
    mkdirSync(join(scratch, name))
    writeFileSync(marker, '')
    expect(succeeds(isHidden(marker))).toBe(false)
  },
)

it('a data directory whose programs may not be run is blamed, not the machine', () => {
  expect(remedyFor('network namespace: spawn /d/runtime/1/corral-supervisor EACCES')).toMatch(
    /noexec.*another with --data-dir/,
  )
})
