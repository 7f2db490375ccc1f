import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createGit, createRepository, writeGlobalConfig } from '@corral/tasks'
import { type GitServer, startGitServer } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { scratchFiles } from '../../packages/tasks/src/sandbox/collected-work.js'
import { openScriptedSandbox } from '../../packages/tasks/src/sandbox/scripted-sandbox.test-suite.js'

/** Needs git-lfs, which is not part of git: `apt install git-lfs`. Everything that does without is tested in `lfs.test.ts`. */
const hasGitLfs = spawnSync('git', ['lfs', 'version']).status === 0

describe.skipIf(!hasGitLfs)('a repository on a server with Git LFS', () => {
  const signal = new AbortController().signal
  let directory: string
  let server: GitServer
  const content = 'large\n'.repeat(50_000)
  const oidOf = (text: string): string => createHash('sha256').update(text).digest('hex')
  // Not in the way of the server, which answers from this process.
  const git = async (cwd: string, ...args: string[]): Promise<string> => {
    const env = { PATH: process.env.PATH, ...server.environment, HOME: directory }
    const command = ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args]
    return (await promisify(execFile)('git', command, { cwd, env, timeout: 120_000 })).stdout
  }
  const stored = (oid: string): string =>
    join(directory, 'served', 'top.git', 'lfs', 'objects', oid.slice(0, 2), oid.slice(2, 4), oid)

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'corral-lfs-server-'))
    mkdirSync(join(directory, 'served'))
    server = await startGitServer(join(directory, 'served'), join(directory, 'server'))
    await git(join(directory, 'served'), 'init', '-q', '--bare', '-b', 'main', 'top.git')
    await git(join(directory, 'served', 'top.git'), 'config', 'http.receivepack', 'true')
    await git(directory, 'clone', '-q', `${server.url}/top.git`, 'seed')
    const seed = join(directory, 'seed')
    await git(seed, 'checkout', '-q', '-b', 'main')
    await git(seed, 'lfs', 'install', '--local')
    await git(seed, 'lfs', 'track', '*.bin')
    writeFileSync(join(seed, 'a.bin'), content)
    await git(seed, 'add', '.')
    await git(seed, 'commit', '-qm', 'first')
    await git(seed, 'push', '-q', 'origin', 'main')
  })
  afterEach(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  it('gives its contents to the sandbox and takes the agent’s, and a clone with git-lfs has both', async () => {
    expect(existsSync(stored(oidOf(content)))).toBe(true)
    const env = { PATH: process.env.PATH, ...server.environment, HOME: directory }
    const repository = createRepository({
      git: createGit({ globalConfig: await writeGlobalConfig(join(directory, 'config'), env), env }),
      mirrorsDirectory: join(directory, 'mirrors'),
    })
    const url = `${server.url}/top.git`
    const taskDirectory = mkdtempSync(join(directory, 'task-'))
    const prepared = await repository.prepare({ url, taskDirectory, lfs: true, signal })
    const box = openScriptedSandbox({ directory, prepared, branch: 'work', lfs: true })
    expect(readFileSync(join(box.repo, 'a.bin'), 'utf8')).toBe(content)
    box.agent('cat a.bin a.bin > b.bin')
    const collected = box.collect()
    const accepted = await repository.accept({
      url,
      taskDirectory,
      bundlePath: collected.bundlePath,
      baseCommit: prepared.commit,
      claimedCommit: collected.commit,
      lfs: true,
      signal,
    })
    const objects = accepted.lfs.map((pointer) => ({
      ...pointer,
      path: scratchFiles.lfsObject(box.scratch, pointer.oid),
    }))
    expect(objects.map(({ oid }) => oid)).toEqual([oidOf(content + content)])
    const commit = collected.commit
    await repository.publish({
      url,
      taskDirectory,
      commit,
      branch: 'work',
      lfs: { objects, baseCommit: prepared.commit },
      signal,
    })
    expect(existsSync(stored(oidOf(content + content)))).toBe(true)

    await git(directory, 'clone', '-q', '-b', 'work', url, 'after')
    const after = join(directory, 'after')
    await git(after, 'lfs', 'install', '--local')
    await git(after, 'lfs', 'pull')
    expect(readFileSync(join(after, 'b.bin'), 'utf8')).toBe(content + content)
    expect((await git(after, 'lfs', 'fsck')).trim()).toMatch(/Git LFS fsck OK/)
  })
})
