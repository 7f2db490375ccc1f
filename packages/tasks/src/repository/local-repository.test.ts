import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkLocalRequest, localPathOf } from './local-repository.js'
import { parseRepositoryUrl } from './repository-url.js'

let root: string
const at = (...parts: string[]): string => join(root, ...parts)
const git = (cwd: string, ...args: string[]): void =>
  void execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], { cwd, stdio: 'ignore' })

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'corral-local-'))
  mkdirSync(at('plain/inside'), { recursive: true })
  git(at('plain'), 'init', '--initial-branch=main')
  git(at('plain'), 'commit', '--allow-empty', '-m', 'first')
  git(at('plain'), 'branch', 'feature/loose')
  git(root, 'clone', '--bare', at('plain'), at('bare.git'))
  git(at('bare.git'), 'pack-refs', '--all')
  git(at('plain'), 'worktree', 'add', '-b', 'tree', at('tree'))
  mkdirSync(at('empty'))
  git(root, 'init', '--initial-branch=main', at('unborn'))
  writeFileSync(at('file'), '')
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('a base that is no branch is refused with the command that makes one of it', () => {
  beforeAll(() => {
    git(at('plain'), 'tag', 'v1.0')
    git(at('plain'), 'tag', '-a', '-m', 'x', 'a(1)')
    git(root, 'clone', at('plain'), at('a clone'))
    git(at('plain'), 'branch', 'later')
    git(at('a clone'), 'fetch', 'origin', 'later:refs/remotes/origin/later')
    git(at('a clone'), 'fetch', '--tags')
    git(root, 'clone', '--mirror', at('a clone'), at('packed.git'))
    git(at('packed.git'), 'pack-refs', '--all')
  })
  const commit = (): string =>
    execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: at('plain'), encoding: 'utf8' }).trim()
  it.each<{ what: string; path?: string; base: string | (() => string); says: RegExp; branch?: string }>([
    { what: 'a tag', base: 'v1.0', says: /"v1\.0" is a tag/, branch: 'from-v1.0' },
    { what: 'a tag with its folder', base: 'tags/v1.0', says: /"v1\.0" is a tag/, branch: 'from-v1.0' },
    { what: 'a tag that a shell reads otherwise', base: 'a(1)', says: /is a tag/, branch: 'from-a(1)' },
    { what: 'a packed tag', path: 'packed.git', base: 'v1.0', says: /is a tag/, branch: 'from-v1.0' },
    { what: 'a commit', base: commit, says: /looks like a commit/ },
    { what: 'a branch of a remote', base: 'later', says: /branch of the remote "origin"/, branch: 'later' },
    { what: 'the same with its remote', base: 'origin/later', says: /branch of the remote "origin"/, branch: 'later' },
    { what: 'a packed one', path: 'packed.git', base: 'later', says: /branch of the remote/, branch: 'later' },
    { what: 'a remote branch that is here too', base: 'origin/main', says: /^The branch is "main" here/ },
    { what: 'a branch with its folder', base: 'heads/main', says: /^Name the branch alone: "main"/ },
  ])('$what', async ({ path = 'a clone', base, says, branch }) => {
    using copy = temporaryCopy(at(path))
    const baseBranch = typeof base === 'string' ? base : base()
    const refused = await checkLocalRequest(copy.path, { baseBranch }).catch((error: unknown) => error as Hinted)
    expect(refused).toMatchObject({ code: 'BranchNotFound', hint: expect.stringMatching(says) })
    const command = /`(git .*)`/.exec((refused as Hinted).hint)?.[1]
    if (command === undefined) return
    execFileSync('/bin/sh', ['-c', command], { stdio: 'ignore' })
    await checkLocalRequest(copy.path, { baseBranch: branch ?? `from-${baseBranch}` })
  })
})

type Hinted = Error & { hint: string }

function temporaryCopy(from: string): Disposable & { path: string } {
  const path = mkdtempSync(join(root, 'a copy '))
  cpSync(from, path, { recursive: true })
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

describe('a repository on this machine', () => {
  it.each([
    { what: 'a work tree', path: 'plain' },
    { what: 'its .git', path: 'plain/.git' },
    { what: 'a bare one', path: 'bare.git' },
    { what: 'a bare one without its suffix', path: 'bare' },
    { what: 'a linked work tree', path: 'tree', branch: 'main' },
    { what: 'a loose branch', path: 'plain', branch: 'feature/loose' },
    { what: 'a packed branch', path: 'bare.git', branch: 'feature/loose' },
    { what: 'a bare one, which has nothing checked out', path: 'bare.git', to: 'main' },
    { what: 'one with such a branch that is not checked out', path: 'plain', to: 'feature/loose' },
  ])('may be $what', async ({ path, branch, to }) => {
    await checkLocalRequest(at(path), { baseBranch: branch, newBranch: to })
  })

  it.each([
    { what: 'nothing', path: 'nowhere', code: 'RepositoryNotFound', says: /there is no git repository at .*nowhere$/ },
    { what: 'something below a file', path: 'file/x', code: 'RepositoryNotFound', says: /no git repository/ },
    { what: 'an empty directory', path: 'empty', code: 'RepositoryNotFound', says: /a directory without a git/ },
    { what: 'a directory inside one', path: 'plain/inside', code: 'RepositoryNotFound', says: /a directory without/ },
    { what: 'a file', path: 'file', code: 'RepositoryNotFound', says: /a file, not a git repository/ },
    { what: 'one without the branch', path: 'plain', branch: 'loose', code: 'BranchNotFound', says: /"loose" in/ },
    { what: 'one with such a folder', path: 'plain', branch: 'feature', code: 'BranchNotFound', says: /"feature" in/ },
    { what: 'one without a commit', path: 'unborn', code: 'RepositoryEmpty', says: /no commit on its branch "main"/ },
    { what: 'one whose branch is the new one', path: 'plain', to: 'main', code: 'BranchCheckedOut', says: /"main" is/ },
    { what: 'one with it in another tree', path: 'plain', to: 'tree', code: 'BranchCheckedOut', says: /"tree" is/ },
    { what: 'a linked tree, to the main one', path: 'tree', to: 'main', code: 'BranchCheckedOut', says: /"main" is/ },
  ])('may not be $what', async ({ path, branch, to, code, says }) => {
    await expect(checkLocalRequest(at(path), { baseBranch: branch, newBranch: to })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(says),
      hint: expect.any(String),
    })
  })

  it('lists its branches with the command that the refusal of an unknown one names, pasted anywhere', async () => {
    const refused = await checkLocalRequest(at('plain'), { baseBranch: 'nope' }).catch((error: unknown) => error)
    const [, command = ''] = /`(.+)`/.exec((refused as { hint: string }).hint) ?? []
    expect(execFileSync('/bin/sh', ['-c', command], { cwd: '/', encoding: 'utf8' })).toContain('refs/heads/main')
  })

  it.each([
    { repo: '/srv/app', path: '/srv/app' },
    { repo: 'file:///srv/my%20app', path: '/srv/my app' },
    { repo: 'https://example.com/app.git', path: undefined },
    { repo: 'ssh://git@example.com/app.git', path: undefined },
    { repo: 'git@example.com:app.git', path: undefined },
  ])('is at $path when $repo is named', ({ repo, path }) => {
    expect(localPathOf(parseRepositoryUrl(repo))).toBe(path)
  })
})

it.each([
  { what: 'nothing', repo: '  ' },
  { what: 'a path with a NUL', repo: '/srv/a\0b' },
  { what: 'an option of git', repo: '--upload-pack=/bin/sh' },
  { what: 'an option before a host', repo: '-oProxyCommand=x@host:app' },
])('$what is no address of a repository', ({ repo }) => {
  expect(() => parseRepositoryUrl(repo)).toThrow(expect.objectContaining({ code: 'Invalid' }))
})
