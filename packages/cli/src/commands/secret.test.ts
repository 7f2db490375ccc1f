import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const program = fileURLToPath(new URL('../../dist/bundle/corral.js', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'corral-secret-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

it.each<[when: string, typed: string, exitCode: number, says: string]>([
  ['it is left with Ctrl-D', '\x04', 2, 'no value was given'],
  ['it is left with Ctrl-C', '\x03', 130, 'nothing was kept'],
  ['a key is typed', 'sk-typed\n', 0, 'kept the secret "anthropic"'],
])('`secret set` on a terminal says what became of it when %s', async (_, typed, exitCode, says) => {
  const command = `'${process.execPath}' '${program}' secret set anthropic --data-dir '${directory}'`
  const env = { PATH: process.env.PATH, HOME: directory, SHELL: '/bin/sh', NO_COLOR: '1' }
  const child = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (!shown.includes('key: ') && (shown + text).includes('key: ')) child.stdin.write(typed)
    shown += text
  })
  expect((await ended)[0], shown).toBe(exitCode)
  expect(shown).toContain(says)
  expect(shown).not.toContain('sk-typed')
  expect(existsSync(join(directory, 'secrets/anthropic'))).toBe(exitCode === 0)
})
