import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { commitUncommitted, findUncommitted, topOf } from './work-tree.js'

let top: string
const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], { cwd: top, encoding: 'utf8' })

beforeEach(() => {
  top = join(mkdtempSync(join(tmpdir(), 'corral-tree-')), 'my code')
  mkdirSync(join(top, 'deep', 'er'), { recursive: true })
  git('init', '--quiet', '--initial-branch=trunk')
  writeFileSync(join(top, 'a.txt'), 'one\n')
  writeFileSync(join(top, 'b.txt'), 'one\n')
  writeFileSync(join(top, '.gitignore'), 'ignored\n')
  git('add', '.')
  git('commit', '--quiet', '-m', 'first')
})
afterEach(() => rmSync(join(top, '..'), { recursive: true, force: true }))

function dirty(): void {
  writeFileSync(join(top, 'a.txt'), 'two\n')
  git('add', 'a.txt')
  writeFileSync(join(top, 'a.txt'), 'three\n')
  rmSync(join(top, 'b.txt'))
  writeFileSync(join(top, 'deep', 'new.txt'), 'new\n')
  writeFileSync(join(top, 'ignored'), 'secret\n')
}

it('finds the top of a repository from a directory inside it', () => {
  expect(topOf(join(top, 'deep', 'er'))).toBe(top)
  expect(topOf(top)).toBe(top)
  expect(topOf(join(top, 'nowhere'))).toBe(join(top, 'nowhere'))
})

it('finds it from a link that lies beside the repository and leads into it', () => {
  symlinkSync(join(top, 'deep'), join(top, '..', 'link'))
  expect(topOf(join(top, '..', 'link'))).toBe(realpathSync(top))
})

describe('what is not committed', () => {
  it('is the first commit where there is none yet; HEAD stays without one', async () => {
    rmSync(join(top, '.git'), { recursive: true })
    git('init', '--quiet', '--initial-branch=trunk')
    const { branch, commit } = await commitUncommitted(top)
    expect(git('rev-list', '--parents', branch).trim()).toBe(commit)
    expect(git('show', `${branch}:a.txt`)).toBe('one\n')
    expect(() => git('rev-parse', '--quiet', '--verify', 'HEAD')).toThrow()
    expect(git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/trunk')
  })

  it('is counted', async () => {
    expect(await findUncommitted(top)).toEqual({ changed: 0, untracked: 0 })
    dirty()
    expect(await findUncommitted(top)).toEqual({ changed: 2, untracked: 1 })
  })

  it('is counted without running what the repository’s configuration names', async () => {
    const mark = join(top, '..', 'ran')
    const program = join(top, '..', 'program')
    writeFileSync(program, `#!/bin/sh\ntouch '${mark}'\ncat\n`)
    chmodSync(program, 0o755)
    git('config', 'core.fsmonitor', program)
    git('config', 'filter.evil.clean', `'${program}'`)
    git('config', 'filter.evil.required', 'true')
    writeFileSync(join(top, '.gitattributes'), '* filter=evil\n')
    dirty()
    rmSync(mark, { force: true })
    expect((await findUncommitted(top))?.untracked).toBe(2)
    expect(existsSync(mark)).toBe(false)
  })

  it('is taken along as one commit; index, HEAD and work tree stay as they are', async () => {
    dirty()
    const before = [git('status', '--porcelain'), git('diff', '--cached'), git('rev-parse', 'HEAD')]
    const index = readFileSync(join(top, '.git', 'index'))
    const { branch, commit } = await commitUncommitted(top)
    expect(readFileSync(join(top, '.git', 'index')).equals(index)).toBe(true)
    expect([git('status', '--porcelain'), git('diff', '--cached'), git('rev-parse', 'HEAD')]).toEqual(before)
    expect(git('rev-parse', branch).trim()).toBe(commit)
    expect(git('rev-parse', `${branch}^`)).toBe(git('rev-parse', 'HEAD'))
    expect(git('ls-tree', '-r', '--name-only', branch).trim().split('\n')).toEqual([
      '.gitignore',
      'a.txt',
      'deep/new.txt',
    ])
    expect(git('show', `${branch}:a.txt`)).toBe('three\n')
  })

  it('is taken along where a file was changed in the second it was added, at the same size', async () => {
    const file = join(top, 'a.txt')
    const then = new Date('2026-01-01T00:00:00Z')
    git('config', 'core.trustctime', 'false')
    writeFileSync(file, 'two\n')
    utimesSync(file, then, then)
    git('add', 'a.txt')
    writeFileSync(file, 'six\n')
    for (const path of [file, join(top, '.git', 'index')]) utimesSync(path, then, then)
    const { branch } = await commitUncommitted(top)
    expect(git('show', `${branch}:a.txt`)).toBe('six\n')
  })

  it('is taken along twice in one second', async () => {
    vi.stubEnv('GIT_AUTHOR_DATE', '2026-01-01T00:00:00Z')
    vi.stubEnv('GIT_COMMITTER_DATE', '2026-01-01T00:00:00Z')
    try {
      dirty()
      expect(await commitUncommitted(top)).toEqual(await commitUncommitted(top))
    } finally {
      vi.unstubAllEnvs()
    }
  })
})
