import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { checkoutScript, collectScript } from '../sandbox/scripts.js'
import { resultRef } from './accept.js'
import { createRepository, type Repository } from './repository.js'

let directory: string
let repository: Repository
const signal = new AbortController().signal
const id = { GIT_AUTHOR_NAME: 'T', GIT_AUTHOR_EMAIL: 't@t', GIT_COMMITTER_NAME: 'T', GIT_COMMITTER_EMAIL: 't@t' }

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, ...id },
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()
}

function makeRepository(name: string): string {
  const path = join(directory, name)
  git(directory, 'init', '-q', '-b', 'main', name)
  writeFileSync(join(path, 'a.txt'), 'one\n')
  git(path, 'add', '.')
  git(path, 'commit', '-qm', 'first')
  return path
}

/** What happens inside a sandbox, done here by the same scripts. */
function workInSandbox(options: { bundle: string; commit: string; branch: string; work: (repo: string) => void }): {
  bundle: string
  output: string
} {
  const box = mkdtempSync(join(directory, 'box-'))
  const repo = join(box, 'repo')
  const bundle = join(box, 'in.bundle')
  writeFileSync(bundle, readFileSync(options.bundle))
  const run = (script: string, env: Record<string, string>): string =>
    execFileSync('/bin/sh', ['-c', script], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', HOME: box, ...env },
    })
  run(checkoutScript, {
    BUNDLE: bundle,
    BASE_REF: `refs/corral/base/${options.commit}`,
    BASE_BRANCH: 'main',
    NEW_BRANCH: options.branch,
    REPO: repo,
    MARKER: join(box, 'marker'),
    AUTHOR_NAME: 'Corral',
    AUTHOR_EMAIL: 'corral@localhost',
  })
  options.work(repo)
  const out = join(box, 'out.bundle')
  const output = run(collectScript, {
    REPO: repo,
    BASE_COMMIT: options.commit,
    RESULT_REF: resultRef,
    BUNDLE: out,
    MESSAGE: 'the work',
  })
  return { bundle: out, output }
}

function committed(output: string): string {
  return /^commit=(.+)$/m.exec(output)?.[1] ?? ''
}

async function roundTrip(url: string, branch: string, work: (repo: string) => void) {
  const taskDirectory = mkdtempSync(join(directory, 'task-'))
  const prepared = await repository.prepare({ url, taskDirectory, signal })
  const { bundle, output } = workInSandbox({ bundle: prepared.bundlePath, commit: prepared.commit, branch, work })
  const request = {
    url,
    taskDirectory,
    bundlePath: bundle,
    baseCommit: prepared.commit,
    claimedCommit: committed(output),
    signal,
  }
  return { taskDirectory, prepared, request, output }
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-repository-'))
  const globalConfig = await writeGlobalConfig(join(directory, 'config'), process.env)
  repository = createRepository({
    git: createGit({ globalConfig, env: process.env }),
    mirrorsDirectory: join(directory, 'mirrors'),
  })
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

describe('a local repository', () => {
  it('FR-3, FR-4, FR-6, FR-7: gets the branch while work tree and HEAD stay as they were', async () => {
    const path = makeRepository('local')
    writeFileSync(join(path, 'a.txt'), 'edited by hand\n')
    const { taskDirectory, request } = await roundTrip(path, 'corral/x', (repo) =>
      writeFileSync(join(repo, 'b.txt'), 'two\nlines\n'),
    )
    const accepted = await repository.accept(request)
    expect(accepted.diffStat).toEqual({ filesChanged: 1, insertions: 2, deletions: 0 })
    expect(readFileSync(accepted.patchPath, 'utf8')).toContain('+two')
    await repository.publish({ url: path, taskDirectory, commit: accepted.commit, branch: 'corral/x', signal })
    expect(git(path, 'show', 'corral/x:b.txt')).toBe('two\nlines')
    expect(git(path, 'log', '-1', '--format=%an <%ae> %s', 'corral/x')).toBe('Corral <corral@localhost> the work')
    expect(git(path, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe('main')
    expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('edited by hand\n')
    expect(git(path, 'status', '--porcelain')).toBe('M a.txt')
  })

  it('is left alone when the branch is already at the commit', async () => {
    const path = makeRepository('twice')
    const { taskDirectory, request } = await roundTrip(path, 'work', (repo) =>
      writeFileSync(join(repo, 'b.txt'), 'x\n'),
    )
    const { commit } = await repository.accept(request)
    for (let round = 0; round < 2; round++)
      await repository.publish({ url: path, taskDirectory, commit, branch: 'work', signal })
    expect(git(path, 'reflog', 'show', 'work').split('\n')).toHaveLength(1)
  })

  it('refuses a branch that went elsewhere', async () => {
    const path = makeRepository('moved')
    const { taskDirectory, request } = await roundTrip(path, 'work', (repo) =>
      writeFileSync(join(repo, 'b.txt'), 'x\n'),
    )
    const { commit } = await repository.accept(request)
    git(path, 'checkout', '-q', '--orphan', 'work')
    git(path, 'commit', '-qm', 'something else')
    git(path, 'checkout', '-q', 'main')
    await expect(
      repository.publish({ url: path, taskDirectory, commit, branch: 'work', signal }),
    ).rejects.toMatchObject({ code: 'BranchExists' })
  })

  it('refuses a named branch with work of its own before anything runs, and takes one that is behind', async () => {
    const path = makeRepository('named')
    git(path, 'branch', 'behind')
    git(path, 'commit', '-q', '--allow-empty', '-m', 'second')
    git(path, 'checkout', '-q', '-b', 'taken')
    git(path, 'commit', '-q', '--allow-empty', '-m', 'elsewhere')
    git(path, 'checkout', '-q', 'main')
    const taskDirectory = mkdtempSync(join(directory, 'task-'))
    const prepare = (newBranch: string): Promise<unknown> =>
      repository.prepare({ url: path, newBranch, taskDirectory, signal })
    await expect(prepare('taken')).rejects.toMatchObject({ code: 'BranchExists' })
    await expect(prepare('behind')).resolves.toMatchObject({ branch: 'main' })
    await expect(prepare('main')).resolves.toMatchObject({ branch: 'main' })
  })
})

describe('a remote repository over file://', () => {
  it('gets one push, however often it is asked for', async () => {
    const seed = makeRepository('seed')
    git(directory, 'clone', '-q', '--bare', seed, 'remote.git')
    const remote = join(directory, 'remote.git')
    git(remote, 'config', 'core.logAllRefUpdates', 'true')
    const url = `file://${remote}`
    const { taskDirectory, request } = await roundTrip(url, 'corral/y', (repo) =>
      writeFileSync(join(repo, 'a.txt'), 'two\n'),
    )
    const { commit, diffStat } = await repository.accept(request)
    expect(diffStat).toEqual({ filesChanged: 1, insertions: 1, deletions: 1 })
    for (let round = 0; round < 3; round++)
      await repository.publish({ url, taskDirectory, commit, branch: 'corral/y', signal })
    expect(git(remote, 'rev-parse', 'corral/y')).toBe(commit)
    expect(readFileSync(join(remote, 'logs/refs/heads/corral/y'), 'utf8').trim().split('\n')).toHaveLength(1)
  })

  it('says so when the remote refuses the push', async () => {
    const seed = makeRepository('seed2')
    git(directory, 'clone', '-q', '--bare', seed, 'refusing.git')
    const remote = join(directory, 'refusing.git')
    git(remote, 'config', 'receive.hideRefs', 'refs/heads/work')
    const url = `file://${remote}`
    const { taskDirectory, request } = await roundTrip(url, 'work', (repo) => writeFileSync(join(repo, 'b.txt'), 'x\n'))
    const { commit } = await repository.accept(request)
    await expect(repository.publish({ url, taskDirectory, commit, branch: 'work', signal })).rejects.toMatchObject({
      code: 'PushRefused',
    })
  })
})

describe('a repository that cannot be read', () => {
  it.each([
    ['a path with nothing there', () => ({ url: join(directory, 'nowhere') }), 'RepositoryNotFound'],
    [
      'a directory that is no repository',
      () => {
        mkdirSync(join(directory, 'plain'))
        return { url: join(directory, 'plain') }
      },
      'RepositoryNotFound',
    ],
    ['a branch that does not exist', () => ({ url: makeRepository('r'), baseBranch: 'nope' }), 'BranchNotFound'],
    [
      'a repository without a commit',
      () => {
        git(directory, 'init', '-q', 'empty')
        return { url: join(directory, 'empty') }
      },
      'RepositoryEmpty',
    ],
    ['something that is no address', () => ({ url: 'ext::sh -c touch% /tmp/x' }), 'Invalid'],
  ])('%s', async (_, make, code) => {
    const taskDirectory = mkdtempSync(join(directory, 'task-'))
    await expect(repository.prepare({ ...make(), taskDirectory, signal })).rejects.toMatchObject({ code })
  })
})

describe('what a sandbox sends back is not trusted', () => {
  it('no change is a result', async () => {
    const { output } = await roundTrip(makeRepository('same'), 'work', () => {})
    expect(output).toContain('changed=no')
  })

  it.each<[string, (repo: string) => void]>([
    [
      'history that does not contain the base',
      (repo) => {
        git(repo, 'checkout', '-q', '--orphan', 'other')
        git(repo, 'commit', '-qm', 'rewritten', '--allow-empty')
      },
    ],
  ])('%s is rejected', async (_, work) => {
    const { request } = await roundTrip(makeRepository('rewritten'), 'work', work)
    await expect(repository.accept(request)).rejects.toMatchObject({ code: 'ResultRejected' })
  })

  it('a bundle with other refs is rejected', async () => {
    const { request, prepared } = await roundTrip(makeRepository('refs'), 'work', (repo) =>
      writeFileSync(join(repo, 'b'), 'x'),
    )
    await expect(repository.accept({ ...request, bundlePath: prepared.bundlePath })).rejects.toMatchObject({
      code: 'ResultRejected',
    })
  })

  it('garbage is rejected', async () => {
    const { request } = await roundTrip(makeRepository('garbage'), 'work', (repo) =>
      writeFileSync(join(repo, 'b'), 'x'),
    )
    writeFileSync(request.bundlePath, 'not a bundle')
    await expect(repository.accept(request)).rejects.toMatchObject({ code: 'ResultRejected' })
  })

  it('a commit other than the announced one is rejected', async () => {
    const { request } = await roundTrip(makeRepository('lied'), 'work', (repo) => writeFileSync(join(repo, 'b'), 'x'))
    await expect(repository.accept({ ...request, claimedCommit: '0'.repeat(40) })).rejects.toMatchObject({
      code: 'ResultRejected',
    })
  })

  it('a .git directory inside a tree is rejected', async () => {
    const { request } = await roundTrip(makeRepository('evil'), 'work', (repo) => {
      const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], {
        cwd: repo,
        input: 'x',
        encoding: 'utf8',
      }).trim()
      const inner = execFileSync('git', ['mktree'], {
        cwd: repo,
        input: `100644 blob ${blob}\tconfig\n`,
        encoding: 'utf8',
      }).trim()
      const tree = execFileSync('git', ['mktree'], {
        cwd: repo,
        input: `040000 tree ${inner}\t.git\n`,
        encoding: 'utf8',
      }).trim()
      const commit = git(repo, 'commit-tree', tree, '-p', 'HEAD', '-m', 'evil')
      git(repo, 'update-ref', 'refs/heads/work', commit)
      git(repo, 'symbolic-ref', 'HEAD', 'refs/heads/work')
      git(repo, 'read-tree', '--empty')
      git(repo, 'update-index', '--add', '--cacheinfo', `100644,${blob},ok.txt`)
    })
    await expect(repository.accept(request)).rejects.toMatchObject({ code: 'ResultRejected' })
  })
})
