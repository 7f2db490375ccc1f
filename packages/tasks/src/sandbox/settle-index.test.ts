import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { settleIndexScript } from './scripts.js'

let repository: string
const git = (...args: string[]): void => {
  const identity = ['-c', 'user.name=A', '-c', 'user.email=a@example.com']
  execFileSync('git', [...identity, ...args], { cwd: repository, stdio: 'ignore' })
}
const at = (path: string): string => join(repository, path)

beforeEach(() => {
  repository = mkdtempSync(join(tmpdir(), 'settle-'))
  git('init', '-q')
  writeFileSync(at('a.txt'), 'one\n')
  git('add', '.')
  git('commit', '-qm', 'start')
})
afterEach(() => rmSync(repository, { recursive: true }))

it.each<{ when: string; prepare: () => void; isLater?: boolean; says: string }>([
  { when: 'files are as they were checked out', prepare: () => undefined, isLater: true, says: '' },
  // In the second of its checkout git writes the index and marks the file in it; later the time of the file says it.
  {
    when: 'set-up changed a file',
    prepare: () => writeFileSync(at('a.txt'), 'two\n'),
    says: ' M a.txt\n',
  },
  {
    when: 'set-up gave the index a time in the future',
    prepare: () => utimesSync(at('.git/index'), 4_000_000_000, 4_000_000_000),
    isLater: false,
    says: '',
  },
])('when $when, git still says "$says"', ({ prepare, isLater, says }) => {
  prepare()
  const before = statSync(at('.git/index')).mtimeMs
  execFileSync('/bin/sh', ['-c', settleIndexScript], { env: { ...process.env, REPO: repository } })
  if (isLater !== undefined) expect(statSync(at('.git/index')).mtimeMs > before).toBe(isLater)
  expect(execFileSync('git', ['status', '--porcelain'], { cwd: repository, encoding: 'utf8' })).toBe(says)
})
