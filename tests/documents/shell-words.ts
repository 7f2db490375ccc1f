import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const recorded = ['bin/corral', 'bin/npm', 'bin/npx', 'bin/kubectl', 'corral', 'node_modules/.bin/vitest']

/**
 * The command lines that bash makes of each statement, as lists of words. Nothing is run: the programs are stand-ins that
 * write down how they are called, and no other program is on the PATH.
 */
export function shellWords(statements: readonly string[]): string[][][] {
  const directory = mkdtempSync(join(tmpdir(), 'corral-words-'))
  const log = join(directory, 'log')
  try {
    for (const name of recorded) {
      mkdirSync(dirname(join(directory, name)), { recursive: true })
      // One write a call: the programs of a pipe write at once.
      writeFileSync(join(directory, name), `#!/bin/sh\nprintf '%s\\0' "${name}" "$@" '\n' >> '${log}'\n`)
      chmodSync(join(directory, name), 0o755)
    }
    return statements.map((text) => {
      writeFileSync(log, '')
      for (const [, file = ''] of text.matchAll(/<\s*([\w.-]+)/g)) writeFileSync(join(directory, file), '')
      const env = { PATH: join(directory, 'bin'), HOME: directory, DIR: 'dir', URL: 'url', TOKEN: 'token', ID: 'id' }
      spawnSync('/bin/bash', ['-c', `${text}\nwait`], { cwd: directory, env, stdio: 'ignore' })
      const calls = readFileSync(log, 'utf8').split('\n\0').filter(Boolean)
      return calls.map((call) =>
        call
          .replace(/\0$/, '')
          .split('\0')
          .map((word, index) => (index === 0 ? bare(word) : word)),
      )
    })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const bare = (name: string): string => name.replace(/^bin\//, '')
