import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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
