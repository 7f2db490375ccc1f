import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Confine } from '../git/confine.js'
import { createGit, type Git } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { openScriptedSandbox } from '../sandbox/scripted-sandbox.test-suite.js'
import { createRepository, type PrepareRequest, type Repository } from './repository.js'

let directory: string
let url: string
const { signal } = new AbortController()
const identity = ['-c', 'user.name=T', '-c', 'user.email=t@t']

function inSource(...args: string[]): string {
  return execFileSync('git', [...identity, ...args], { cwd: url, encoding: 'utf8', stdio: 'pipe' }).trim()
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-ahead-'))
  url = join(directory, 'source')
  execFileSync('git', ['init', '-q', '-b', 'main', url])
  writeFileSync(join(url, 'a.txt'), 'one\n')
  inSource('add', '.')
  inSource('commit', '-qm', 'first')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function open({
  confine,
  wrap = (git) => git,
}: {
  confine?: Confine
  wrap?: (git: Git) => Git
}): Promise<Repository> {
  const globalConfig = await writeGlobalConfig(join(directory, 'config'), {})
  const git = createGit({ globalConfig, env: { PATH: process.env.PATH, HOME: directory } })
  const mirrorsDirectory = join(directory, 'mirrors')
  return createRepository({ git: wrap(git), mirrorsDirectory, ...(confine ? { confine } : {}) })
}

const requestFor = (newBranch: string): PrepareRequest => ({
  url,
  newBranch,
  taskDirectory: mkdtempSync(join(directory, 'task-')),
  signal,
})

describe('a result that is expected', () => {
  async function expectedResult(confine: Confine) {
    const repository = await open({ confine })
    const { taskDirectory } = requestFor('work')
    const prepared = await repository.prepare({ url, taskDirectory, signal })
    const expected = await repository.expectResult({ url, taskDirectory, baseCommit: prepared.commit, signal })
    const sandbox = openScriptedSandbox({ directory, prepared, branch: 'work' })
    writeFileSync(join(sandbox.repo, 'b.txt'), 'two\nthree\n')
    const { bundlePath, commit } = sandbox.collect()
    const request = { url, taskDirectory, bundlePath, baseCommit: prepared.commit, claimedCommit: commit, signal }
    return { repository, expected, request, commit, taskDirectory }
  }

  it('is checked by gits that waited for it: none is started any more', async () => {
    let started = 0
    const { expected, request, commit } = await expectedResult(({ argv }) => {
      started += 1
      return argv
    })
    const before = started
    const accepted = await expected.accept(request)
    expect(accepted).toMatchObject({ commit, diffStat: { filesChanged: 1, insertions: 2, deletions: 0 } })
    expect(readFileSync(accepted.patchPath ?? '', 'utf8')).toContain('+three')
    expect(started).toBe(before)
    await expected.close()
    expect(existsSync(accepted.patchPath ?? '')).toBe(true)
  })

  it('is checked all the same where the gits that waited have ended', async () => {
    let isWaiting = true
    const { expected, request, commit } = await expectedResult(({ argv }) => (isWaiting ? ['/bin/false'] : argv))
    isWaiting = false
    expect(await expected.accept(request)).toMatchObject({ commit, diffStat: { filesChanged: 1 } })
  })

  it('is refused as any other where it does not build on the base', async () => {
    const { expected, request } = await expectedResult(({ argv }) => argv)
    inSource('commit', '-q', '--allow-empty', '-m', 'beside')
    const repository = await open({})
    const { commit } = await repository.prepare({ ...requestFor('other'), url })
    await expect(expected.accept({ ...request, baseCommit: commit })).rejects.toMatchObject({
      code: 'ResultRejected',
      message: expect.stringContaining('does not build on the base'),
    })
  })

  it('leaves nothing where none came', async () => {
    const { expected, taskDirectory } = await expectedResult(({ argv }) => argv)
    await expected.close()
    expect(existsSync(join(taskDirectory, 'result.patch'))).toBe(false)
    await expected.close()
  })
})

describe('a base that is fetched ahead', () => {
  /** Counts how often the repository is asked; the first `failures` times it does not answer. */
  async function counted(failures = 0): Promise<{ repository: Repository; asked: () => number }> {
    let asked = 0
    const wrap =
      (git: Git): Git =>
      (args, options) => {
        if (args[0] !== 'ls-remote') return git(args, options)
        asked += 1
        return asked <= failures ? Promise.reject(new Error('the remote is away')) : git(args, options)
      }
    return { repository: await open({ wrap }), asked: () => asked }
  }

  it('is not asked for again by the task that it was fetched for', async () => {
    const { repository, asked } = await counted()
    const request = requestFor('work')
    repository.fetchAhead(request)
    const prepared = await repository.prepare(request)
    expect(prepared.commit).toBe(inSource('rev-parse', 'HEAD'))
    expect(asked()).toBe(1)
    await repository.prepare(request)
    expect(asked()).toBe(2)
  })

  it('is fetched by the task itself where that failed', async () => {
    const { repository, asked } = await counted(1)
    const request = requestFor('work')
    repository.fetchAhead(request)
    expect((await repository.prepare(request)).commit).toBe(inSource('rev-parse', 'HEAD'))
    expect(asked()).toBe(2)
  })

  it.each<{ what: string; change: Partial<PrepareRequest> }>([
    { what: 'another branch', change: { newBranch: 'other' } },
    { what: 'another base', change: { baseBranch: 'main' } },
    { what: 'commits of an earlier run', change: { ownCommits: ['0'.repeat(40)] } },
  ])('does not answer for $what', async ({ change }) => {
    const { repository, asked } = await counted()
    const request = requestFor('work')
    repository.fetchAhead(request)
    await repository.prepare({ ...request, ...change })
    expect(asked()).toBe(2)
  })

  it('tells what keeps the work from being pushed when the task comes to it', async () => {
    const { repository } = await counted()
    inSource('branch', 'work/below')
    const request = requestFor('work')
    repository.fetchAhead(request)
    await expect(repository.prepare(request)).rejects.toMatchObject({ code: 'BranchConflict' })
  })
})
