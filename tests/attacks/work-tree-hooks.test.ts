import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkOutBranch } from '../../packages/cli/src/client/take-home.js'

/** Husky and others keep hooks in the work tree: once a task's branch is checked out, they are what the agent wrote. */
let scratch: TemporaryDirectory
let repo: string
let marker: string
let commit: string
const branch = 'corral/task-1'

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], { cwd, encoding: 'utf8' }).trim()

function addFile(path: string, content: string): void {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, content, { mode: 0o755 })
}

beforeAll(() => {
  scratch = temporaryDirectory()
  repo = join(scratch.path, 'repo')
  marker = join(scratch.path, 'ran')
  git(scratch.path, 'init', '-q', '-b', 'main', repo)
  addFile(join(repo, '.husky', 'pre-commit'), '#!/bin/sh\n')
  git(repo, 'add', '.')
  git(repo, 'commit', '-qm', 'base')
  git(repo, 'checkout', '-qb', branch)
  for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change'])
    addFile(join(repo, '.husky', hook), `#!/bin/sh\necho ${hook} >> ${marker}\n`)
  git(repo, 'add', '.')
  git(repo, 'commit', '-qm', 'what the agent left')
  commit = git(repo, 'rev-parse', 'HEAD')
  git(repo, 'checkout', '-q', 'main')
})
afterAll(async () => await scratch[Symbol.asyncDispose]())

function cloneWithHooks(name: string): string {
  const path = join(scratch.path, name)
  git(scratch.path, 'clone', '-q', repo, path)
  git(path, 'config', 'core.hooksPath', '.husky')
  return path
}

it('corral task checkout runs no hook of the branch where the work tree has its hooks in itself', async () => {
  const tree = cloneWithHooks('taken')
  expect(await checkOutBranch(tree, { id: 'task-1', repo, branch, commit }, branch)).toEqual({ fetched: true })
  expect(git(tree, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe(branch)
  expect(existsSync(marker)).toBe(false)

  // The control: git, called by the user, does run them.
  const other = cloneWithHooks('by-hand')
  git(other, 'fetch', '-q', repo, `${branch}:${branch}`)
  git(other, 'checkout', '-q', branch)
  expect(existsSync(marker)).toBe(true)
})
