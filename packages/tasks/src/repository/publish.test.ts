import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { quarantineOf, resultRef } from './quarantine.js'
import { createRepository } from './repository.js'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-publish-'))
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

const identity = ['-c', 'user.name=T', '-c', 'user.email=t@t']

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', [...identity, ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()
}

/** The record of a task with an accepted result on top of the repository's branch. */
function acceptedResult(repository: string, message: string): { taskDirectory: string; commit: string } {
  const taskDirectory = mkdtempSync(join(directory, 'task-'))
  const quarantine = quarantineOf(taskDirectory)
  git(directory, 'clone', '-q', '--bare', repository, quarantine)
  const commit = git(quarantine, 'commit-tree', 'HEAD^{tree}', '-p', 'HEAD', '-m', message)
  git(quarantine, 'update-ref', resultRef, commit)
  return { taskDirectory, commit }
}

it('of two tasks that push to the same new branch at once one is told that it exists: no work is pushed away', async () => {
  const main = join(directory, 'main')
  const linked = join(directory, 'linked')
  git(directory, 'init', '-q', '-b', 'main', main)
  git(main, 'commit', '-q', '--allow-empty', '-m', 'first')
  git(main, 'worktree', 'add', '-q', '--detach', linked)
  const works = [main, linked].map((url) => ({ url, ...acceptedResult(main, `by way of ${url}`) }))
  const plainGit = createGit({ globalConfig: await writeGlobalConfig(join(directory, 'config'), {}), env: process.env })
  let [writing, mostWriting] = [0, 0]
  const repository = createRepository({
    mirrorsDirectory: join(directory, 'mirrors'),
    git: async (args, options) => {
      if (args[0] !== 'fetch') return plainGit(args, options)
      writing += 1
      mostWriting = Math.max(mostWriting, writing)
      return plainGit(args, options).finally(() => {
        writing -= 1
      })
    },
  })
  const { signal } = new AbortController()
  const ends = await Promise.allSettled(works.map((work) => repository.publish({ ...work, branch: 'work', signal })))
  expect(ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))).toMatchObject([
    { code: 'BranchExists' },
  ])
  expect(git(main, 'rev-parse', 'work')).toBe(works[ends.findIndex(({ status }) => status === 'fulfilled')]?.commit)
  expect(mostWriting).toBe(1)
})
