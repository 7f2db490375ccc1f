import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { waitUntil } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-interrupted-setup-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const urlOf = (script: string): string => new URL(`../../scripts/${script}`, import.meta.url).href

describe.skipIf(process.platform !== 'linux')('set-up that is interrupted (Linux only)', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'leaves nothing running that npm started, at %s',
    async (signal) => {
      const program = `
      import { runToEnd } from ${JSON.stringify(urlOf('run-to-end.mjs'))}
      await runToEnd('sh', ['-c', 'sleep 600 & echo $!; wait'], { stdio: ['ignore', 'inherit', 'inherit'] })`
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [line] = (await once(child.stdout, 'data')) as [Buffer]
      const ended = once(child, 'exit')
      child.kill(signal)
      expect(await ended).toEqual([{ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }[signal], null])
      await waitUntil('what it started has ended', () => !existsSync(`/proc/${line.toString().trim()}`))
    },
  )
})

it('packages that an interrupted npm left out are missing, those of other machines are not', async () => {
  const packages = {
    '': {},
    'packages/app': {},
    'node_modules/app': { link: true },
    'node_modules/whole': {},
    'node_modules/whole/node_modules/inner': {},
    'node_modules/half': { dev: true },
    'node_modules/other-system': { optional: true },
  }
  writeFileSync(join(directory, 'package-lock.json'), JSON.stringify({ packages }))
  for (const path of ['node_modules/whole/package.json', 'node_modules/half/index.js']) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), '{}')
  }
  const { missingPackages } = (await import(urlOf('installed-packages.mjs'))) as {
    missingPackages(root: string): string[]
  }
  expect(missingPackages(directory)).toEqual(['node_modules/whole/node_modules/inner', 'node_modules/half'])
})
