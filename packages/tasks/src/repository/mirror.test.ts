import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { KeyedLock } from '../keyed-lock.js'
import { createMirrors } from './mirror.js'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-mirror-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

it('a mirror that was fetched into many times is packed, and has everything it had', async () => {
  const source = join(directory, 'source')
  const env = { PATH: process.env.PATH, HOME: directory, GIT_CONFIG_NOSYSTEM: '1' }
  const git = (cwd: string, ...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], { cwd, env, encoding: 'utf8' })
  mkdirSync(source)
  git(source, 'init', '-q', '-b', 'main')
  const mirrors = createMirrors({
    directory: join(directory, 'mirrors'),
    git: createGit({ globalConfig: '/dev/null', env }),
    lock: new KeyedLock(),
    housekeeping: { packs: 3, looseObjects: 10 },
  })
  const location = { kind: 'local', url: source, path: source, address: source } as const
  const commits: string[] = []
  const looseObjects = (mirror: string): number =>
    Number(/^count: (\d+)$/m.exec(git(mirror, 'count-objects', '-v'))?.[1])
  let most = 0
  let mirror = ''
  for (let round = 0; round < 8; round++) {
    writeFileSync(join(source, `file-${round}`), `${round}\n`)
    git(source, 'add', '.')
    git(source, 'commit', '-qm', String(round))
    const fetched = await mirrors.fetch(location, 'main', { signal: new AbortController().signal })
    mirror = fetched.directory
    commits.push(fetched.commit)
    most = Math.max(most, looseObjects(mirror))
  }
  expect(most).toBeLessThanOrEqual(10)
  expect(
    readdirSync(join(mirror, 'objects', 'pack')).filter((name) => name.endsWith('.pack')).length,
  ).toBeLessThanOrEqual(4)
  expect(git(mirror, 'rev-list', 'refs/heads/main').trim().split('\n').toReversed()).toEqual(commits)
  expect(git(mirror, 'fsck', '--full', '--no-dangling')).toBe('')
})
