import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createGit, createRepository, type Repository, writeGlobalConfig } from '@corral/tasks'
import { type GitServer, startGitServer } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Git, GitError } from '../../packages/tasks/src/git/git.js'
import { isTooLarge } from '../../packages/tasks/src/repository/partial-mirror.js'
import { openScriptedSandbox } from '../../packages/tasks/src/sandbox/scripted-sandbox.test-suite.js'

describe('a very large repository on a server', () => {
  const signal = new AbortController().signal
  let directory: string
  let server: GitServer
  const top = (): string => join(directory, 'served', 'top.git')
  // Not in the way of the server, which answers from this process.
  const git = async (cwd: string, ...args: string[]): Promise<string> => {
    const env = { PATH: process.env.PATH, ...server.environment, HOME: directory, GIT_NO_LAZY_FETCH: '1' }
    const command = ['-c', 'user.name=T', '-c', 'user.email=t@localhost', '-c', 'safe.directory=*', ...args]
    return (await promisify(execFile)('git', command, { cwd, env, timeout: 120_000 })).stdout.trim()
  }
  const commit = async (name: string, text: string): Promise<void> => {
    const seed = join(directory, 'seed')
    writeFileSync(join(seed, name), text)
    await git(seed, 'add', '.')
    await git(seed, 'commit', '-qm', `${name}: ${text.slice(0, 20)}`)
    await git(seed, 'push', '-q', 'origin', 'main')
  }
  const missingIn = async (mirror: string): Promise<number> =>
    (await git(mirror, 'rev-list', '--objects', '--missing=print', '--all'))
      .split('\n')
      .filter((line) => line[0] === '?').length

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'corral-large-'))
    mkdirSync(join(directory, 'served'))
    server = await startGitServer(join(directory, 'served'), join(directory, 'server'))
    await git(join(directory, 'served'), 'init', '-q', '--bare', '-b', 'main', 'top.git')
    await git(top(), 'config', 'http.receivepack', 'true')
    await git(directory, 'clone', '-q', `${server.url}/top.git`, 'seed')
    await git(join(directory, 'seed'), 'checkout', '-q', '-b', 'main')
    for (const text of ['first', 'second', 'third']) await commit('a.txt', text)
    await commit('deep.txt', 'as it was')
    await git(join(directory, 'seed'), 'tag', 'v1')
    await git(join(directory, 'seed'), 'push', '-q', 'origin', 'v1')
  })
  afterEach(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  const open = async (options: { partialAboveBytes: number; wrap?: (git: Git) => Git }): Promise<Repository> => {
    const env = { PATH: process.env.PATH, ...server.environment, HOME: directory }
    const plain = createGit({ globalConfig: await writeGlobalConfig(join(directory, 'config'), env), env })
    const { partialAboveBytes, wrap = (same) => same } = options
    return createRepository({ git: wrap(plain), mirrorsDirectory: join(directory, 'mirrors'), partialAboveBytes })
  }
  const url = (): string => `${server.url}/top.git`
  const mirror = async (): Promise<string> => {
    const { readdirSync } = await import('node:fs')
    return join(directory, 'mirrors', readdirSync(join(directory, 'mirrors')).find((name) => name.endsWith('.git'))!)
  }

  /** Prepares a task, lets its agent work, and pushes what it left. */
  async function roundTrip(repository: Repository, branch: string, agent: string, more: object = {}): Promise<boolean> {
    const taskDirectory = mkdtempSync(join(directory, 'task-'))
    const prepared = await repository.prepare({ url: url(), newBranch: branch, taskDirectory, signal, ...more })
    const box = openScriptedSandbox({ directory, prepared, branch })
    box.agent(agent)
    const { bundlePath, commit: claimedCommit } = box.collect()
    const result = { url: url(), taskDirectory, bundlePath, baseCommit: prepared.commit, claimedCommit, signal }
    await repository.accept(result)
    await repository.publish({ url: url(), taskDirectory, commit: claimedCommit, branch, signal })
    return prepared.isPartial
  }

  it('is mirrored without earlier contents; the sandbox has its whole history, and the work arrives whole', async () => {
    await git(top(), 'config', 'uploadpack.allowFilter', 'true')
    const repository = await open({ partialAboveBytes: 0 })
    const looks = [
      'git log --format=%s > history.txt',
      'git describe --tags > described.txt',
      'git status --short > status.txt',
      'git gc --quiet 2> gc.txt',
      'cat a.txt deep.txt > read.txt',
      'if git cat-file -e HEAD~2:a.txt 2>/dev/null; then exit 9; fi',
      'echo fourth > a.txt',
    ]
    expect(await roundTrip(repository, 'work', looks.join(' && '))).toBe(true)
    expect(await missingIn(await mirror())).toBe(2)
    const shown = (path: string): Promise<string> => git(top(), 'show', `work:${path}`)
    expect((await shown('history.txt')).split('\n')).toHaveLength(4)
    expect(await shown('described.txt')).toBe('v1')
    expect(await shown('gc.txt')).toBe('')
    expect(await shown('read.txt')).toBe('thirdas it was')
    expect(await git(top(), 'rev-parse', 'work^')).toBe(await git(top(), 'rev-parse', 'main'))
    expect(await git(top(), 'fsck', '--full', '--no-dangling')).toBe('')

    // The base moves on, and a retry begins at a commit whose contents were never brought.
    const old = await git(top(), 'rev-parse', 'main~2')
    await commit('a.txt', 'later')
    expect(await roundTrip(repository, 'next', 'cat a.txt > seen.txt')).toBe(true)
    expect(await git(top(), 'show', 'next:seen.txt')).toBe('later')
    expect(await roundTrip(repository, 'again', 'cat a.txt > seen.txt', { baseCommit: old })).toBe(true)
    expect(await git(top(), 'show', 'again:seen.txt')).toBe('second')
  })

  it('is mirrored whole by a server that cannot leave contents out', async () => {
    const repository = await open({ partialAboveBytes: 0 })
    expect(await roundTrip(repository, 'work', 'git show HEAD~2:a.txt > old.txt')).toBe(false)
    expect(await git(top(), 'show', 'work:old.txt')).toBe('second')
    expect(await missingIn(await mirror())).toBe(0)
    expect(readFileSync(join(await mirror(), 'config'), 'utf8')).not.toMatch(/promisor|partial/i)
  })

  it('is begun as any other: only a first fetch that brings too much becomes partial, and says so', async () => {
    await git(top(), 'config', 'uploadpack.allowFilter', 'true')
    const lines: string[] = []
    const slow =
      (run: Git): Git =>
      (args, options) =>
        args[0] === 'fetch' && !args.some((arg) => arg.startsWith('--filter'))
          ? new Promise((_, reject) => {
              options?.signal?.addEventListener('abort', () => reject(new GitError(args, null, 'aborted')))
              options?.onStderr?.('Receiving objects:  40% (400/1000), 1.50 GiB | 2.00 MiB/s')
            })
          : run(args, options)
    const repository = await open({ partialAboveBytes: 1024 ** 3, wrap: slow })
    const more = { onProgress: (line: string) => lines.push(line) }
    expect(await roundTrip(repository, 'work', 'echo fourth > a.txt', more)).toBe(true)
    expect(lines).toContain('a very large repository: contents of earlier versions of files are left out')
    expect(await git(top(), 'show', 'work:a.txt')).toBe('fourth')
  })
})

it.each([
  { line: 'Receiving objects:  40% (4/10), 1.50 GiB | 2 MiB/s', says: true },
  { line: 'Receiving objects:  40% (4/10), 1023.00 MiB | 2 MiB/s', says: false },
  { line: 'Receiving objects:  95% (95/100), 1.50 GiB | 2 MiB/s', says: false },
  { line: 'Receiving objects:  10% (1/10)', says: false },
  { line: 'Resolving deltas:  10% (1/10), 2.00 GiB', says: false },
])('$line is more than a complete mirror takes: $says', ({ line, says }) => {
  expect(isTooLarge(line, 1024 ** 3)).toBe(says)
})
