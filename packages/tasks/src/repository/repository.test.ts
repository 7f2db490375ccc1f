import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { writeGlobalConfig } from '../git/global-config.js'
import { openScriptedSandbox } from '../sandbox/scripted-sandbox.test-suite.js'
import { resultRef } from './quarantine.js'
import { createRepository, type PreparedRepository, type Repository } from './repository.js'

let directory: string
let repository: Repository
const signal = new AbortController().signal
const id = {
  GIT_AUTHOR_NAME: 'T',
  GIT_AUTHOR_EMAIL: 't@t',
  GIT_COMMITTER_NAME: 'T',
  GIT_COMMITTER_EMAIL: 't@t',
  // The sandbox works as another user where the tests run as root.
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'safe.directory',
  GIT_CONFIG_VALUE_0: '*',
}

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, ...id },
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()
}

function makeRepository(name: string, branch = 'main'): string {
  const path = join(directory, name)
  git(directory, 'init', '-q', '-b', branch, name)
  writeFileSync(join(path, 'a.txt'), 'one\n')
  git(path, 'add', '.')
  git(path, 'commit', '-qm', 'first')
  return path
}

async function roundTrip(url: string, branch: string, work: (repo: string) => void, defaultBranch?: string) {
  const taskDirectory = mkdtempSync(join(directory, 'task-'))
  const prepared = await repository.prepare({ url, taskDirectory, signal })
  const sandbox = openScriptedSandbox({
    directory,
    prepared,
    branch,
    ...(defaultBranch ? { gitConfig: `[init]\n\tdefaultBranch = ${defaultBranch}\n` } : {}),
  })
  work(sandbox.repo)
  const collected = sandbox.collect()
  const request = {
    url,
    taskDirectory,
    bundlePath: collected.bundlePath,
    baseCommit: prepared.commit,
    claimedCommit: collected.commit,
    signal,
  }
  return { taskDirectory, prepared, request, collected }
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
    expect(readFileSync(accepted.patchPath ?? '', 'utf8')).toContain('+two')
    await repository.publish({ url: path, taskDirectory, commit: accepted.commit, branch: 'corral/x', signal })
    expect(git(path, 'show', 'corral/x:b.txt')).toBe('two\nlines')
    expect(git(path, 'log', '-1', '--format=%an <%ae> %s', 'corral/x')).toBe('Corral <corral@localhost> Do the work')
    expect(git(path, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe('main')
    expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('edited by hand\n')
    expect(git(path, 'status', '--porcelain')).toBe('M a.txt')
  })

  it('takes a repeated push whose branch the user has checked out since', async () => {
    const path = makeRepository('local')
    const { taskDirectory, request } = await roundTrip(path, 'corral/x', (repo) =>
      writeFileSync(join(repo, 'b.txt'), 'two\n'),
    )
    const { commit } = await repository.accept(request)
    const publish = (branch: string): Promise<void> =>
      repository.publish({ url: path, taskDirectory, commit, branch, signal })
    await publish('corral/x')
    git(path, 'checkout', '-q', 'corral/x')
    await expect(publish('corral/x')).resolves.toBeUndefined()
    // The control: another branch that is checked out is not written to.
    git(path, 'checkout', '-q', 'main')
    await expect(publish('main')).rejects.toMatchObject({
      code: 'PushRefused',
      message: expect.stringMatching(/checked out/),
    })
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

  it('replaces the branch of a task that this one repeats, and only where it stands at that commit', async () => {
    const path = makeRepository('repeated')
    const { taskDirectory, request } = await roundTrip(path, 'work', (repo) =>
      writeFileSync(join(repo, 'b.txt'), 'second\n'),
    )
    const { commit } = await repository.accept(request)
    git(path, 'checkout', '-q', '-b', 'work')
    git(path, 'commit', '-q', '--allow-empty', '-m', 'of the first attempt')
    const former = git(path, 'rev-parse', 'HEAD')
    git(path, 'checkout', '-q', 'main')
    const publish = (replaces: string[]): Promise<void> =>
      repository.publish({ url: path, taskDirectory, commit, branch: 'work', replaces, signal })
    await expect(publish([commit])).rejects.toMatchObject({ code: 'BranchExists' })
    await publish([former])
    expect(git(path, 'rev-parse', 'work')).toBe(commit)
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
    await expect(prepare('main')).rejects.toMatchObject({ code: 'BranchCheckedOut' })
  })
})

describe('a mirror that a power cut damaged is fetched again', () => {
  const empty = (pattern: RegExp): void => {
    for (const name of readdirSync(join(directory, 'mirrors'), { recursive: true, encoding: 'utf8' })) {
      const path = join(directory, 'mirrors', name)
      if (!pattern.test(name) || !statSync(path).isFile()) continue
      chmodSync(path, 0o600)
      writeFileSync(path, '')
    }
  }
  it.each([
    { what: 'its HEAD', files: /\.git\/HEAD$/ },
    { what: 'its objects', files: /\.git\/objects\// },
    { what: 'its refs', files: /\.git\/refs\// },
    { what: 'all that is in it', files: /\.git\// },
  ])('$what', async ({ files }) => {
    const url = makeRepository('local')
    const prepare = (): Promise<PreparedRepository> =>
      repository.prepare({ url, taskDirectory: mkdtempSync(join(directory, 'task-')), signal })
    for (const subjects of ['first', 'second\nfirst']) {
      await prepare()
      empty(files)
      if (subjects !== 'first') {
        writeFileSync(join(url, 'a.txt'), 'two\n')
        git(url, 'commit', '-qam', 'second')
      }
      const prepared = await prepare()
      expect(prepared.commit).toBe(git(url, 'rev-parse', 'HEAD'))
      const clone = mkdtempSync(join(directory, 'clone-'))
      git(clone, 'init', '-q')
      git(clone, 'fetch', '-q', prepared.bundlePath, '+refs/*:refs/got/*')
      expect(git(clone, 'log', '--format=%s', prepared.commit)).toBe(subjects)
    }
  })

  it('one that is whole stays where the repository itself is damaged', async () => {
    const url = makeRepository('local')
    const taskDirectory = mkdtempSync(join(directory, 'task-'))
    await repository.prepare({ url, taskDirectory, signal })
    const [mirror = ''] = readdirSync(join(directory, 'mirrors'))
    const mark = join(directory, 'mirrors', mirror, 'mark')
    writeFileSync(mark, '')
    writeFileSync(join(url, 'a.txt'), 'two\n')
    git(url, 'commit', '-qam', 'second')
    const tree = git(url, 'rev-parse', 'HEAD^{tree}')
    const object = join(url, '.git/objects', tree.slice(0, 2), tree.slice(2))
    chmodSync(object, 0o600)
    writeFileSync(object, '')
    await expect(repository.prepare({ url, taskDirectory, signal })).rejects.toMatchObject({
      code: 'RepositoryDamaged',
    })
    expect(existsSync(mark)).toBe(true)
  })
})

describe('every base branch works, whatever the git of the sandbox calls its first branch', () => {
  const branches = ['main', 'master', 'trunk', 'release/1.x']
  it.each(
    branches.flatMap((base) =>
      [base, base === 'main' ? 'master' : 'main'].map((defaultBranch) => ({ base, defaultBranch })),
    ),
  )('base $base, init.defaultBranch $defaultBranch', async ({ base, defaultBranch }) => {
    const path = makeRepository('named', base)
    const { taskDirectory, request } = await roundTrip(
      path,
      'corral/x',
      (repo) => {
        expect(git(repo, 'rev-parse', base)).toBe(git(path, 'rev-parse', base))
        expect(git(repo, 'status', '--porcelain')).toBe('')
        writeFileSync(join(repo, 'b.txt'), 'two\n')
      },
      defaultBranch,
    )
    const { commit } = await repository.accept(request)
    await repository.publish({ url: path, taskDirectory, commit, branch: 'corral/x', signal })
    expect(git(path, 'show', 'corral/x:b.txt')).toBe('two')
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

  it('gets the branch although a ref whose name ends like it has the commit', async () => {
    const seed = makeRepository('seed-fork')
    git(directory, 'clone', '-q', '--bare', seed, 'with-fork.git')
    const remote = join(directory, 'with-fork.git')
    const url = `file://${remote}`
    const { taskDirectory, request } = await roundTrip(url, 'work', (repo) => writeFileSync(join(repo, 'f.txt'), 'x\n'))
    const { commit } = await repository.accept(request)
    await repository.publish({ url, taskDirectory, commit, branch: 'work', signal })
    git(remote, 'update-ref', 'refs/fork/refs/heads/work', commit)
    git(remote, 'update-ref', '-d', 'refs/heads/work')
    await repository.publish({ url, taskDirectory, commit, branch: 'work', signal })
    expect(git(remote, 'rev-parse', 'refs/heads/work')).toBe(commit)
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

describe('hooks of the repository that is pushed to', () => {
  const isRoot = process.getuid?.() === 0
  function makeRemote(hook: string): { remote: string; log: string } {
    const remote = join(directory, 'hooked.git')
    git(directory, 'clone', '-q', '--bare', makeRepository('hooked-seed'), remote)
    git(remote, 'config', 'hooks.word', 'from the configuration')
    const log = join(directory, 'hook.log')
    writeFileSync(
      join(remote, 'hooks/pre-receive'),
      `#!/bin/sh\ncat >> ${log}\ngit config hooks.word >> ${log}\n${hook}\n`,
    )
    chmodSync(join(remote, 'hooks/pre-receive'), 0o755)
    return { remote, log }
  }
  async function push(url: string): Promise<string> {
    const { taskDirectory, request } = await roundTrip(url, 'work', (repo) => writeFileSync(join(repo, 'b.txt'), 'x\n'))
    const { commit } = await repository.accept(request)
    await repository.publish({ url, taskDirectory, commit, branch: 'work', signal })
    return commit
  }

  it('run for a file:// address and see the configuration of their repository', async () => {
    const { remote, log } = makeRemote('exit 0')
    const commit = await push(`file://${remote}`)
    expect(readFileSync(log, 'utf8')).toBe(`${'0'.repeat(40)} ${commit} refs/heads/work\nfrom the configuration\n`)
    expect(git(remote, 'rev-parse', 'work')).toBe(commit)
  })

  it('refuse a push with their own words', async () => {
    const { remote } = makeRemote('echo "no task without a ticket" >&2; exit 1')
    await expect(push(`file://${remote}`)).rejects.toMatchObject({
      code: 'PushRefused',
      message: expect.stringContaining('no task without a ticket'),
    })
    expect(git(remote, 'branch', '--list', 'work')).toBe('')
  })

  it('are found where core.hooksPath of the repository says', async () => {
    const { remote, log } = makeRemote('exit 0')
    git(remote, 'config', 'core.hooksPath', "other hooks'")
    renameSync(join(remote, 'hooks'), join(remote, "other hooks'"))
    await push(`file://${remote}`)
    expect(readFileSync(log, 'utf8')).toContain('refs/heads/work')
  })

  it('do not run for a path, which is fetched into', async () => {
    const { remote, log } = makeRemote('exit 1')
    const commit = await push(remote)
    expect(git(remote, 'rev-parse', 'work')).toBe(commit)
    expect(existsSync(log)).toBe(false)
  })

  it.skipIf(!isRoot)('of another user refuse the push and say so (needs root to give files away)', async () => {
    const { remote, log } = makeRemote('exit 0')
    chownSync(join(remote, 'hooks/pre-receive'), 54_321, 54_321)
    await expect(push(`file://${remote}`)).rejects.toMatchObject({
      code: 'PushRefused',
      message: `${remote} has the hook pre-receive, which runs on a push as the user of Corral, but ${remote}/hooks/pre-receive belongs to another user`,
      hint: expect.stringContaining('by its path'),
    })
    expect(existsSync(log)).toBe(false)
    expect(git(remote, 'branch', '--list', 'work')).toBe('')
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
    ['a host that ssh would take for an option', () => ({ url: 'ssh://-oProxyCommand=id/x' }), 'Invalid'],
    ['a user that ssh would take for an option', () => ({ url: 'ssh://-F@host/x' }), 'Invalid'],
    ['such a host in the short form', () => ({ url: 'git@-F:x' }), 'Invalid'],
    ['something that is no address', () => ({ url: 'ext::sh -c touch% /tmp/x' }), 'Invalid'],
  ])('%s', async (_, make, code) => {
    const taskDirectory = mkdtempSync(join(directory, 'task-'))
    await expect(repository.prepare({ ...make(), taskDirectory, signal })).rejects.toMatchObject({ code })
  })
})

describe('what a sandbox sends back is not trusted', () => {
  it('no change is a result', async () => {
    const { collected } = await roundTrip(makeRepository('same'), 'work', () => {})
    expect(collected.changed).toBe(false)
  })

  it('history that does not contain the base is rejected', async () => {
    const { request } = await roundTrip(makeRepository('rewritten'), 'work', (repo) =>
      writeFileSync(join(repo, 'b'), 'x'),
    )
    const forged = makeRepository('forged')
    // Of its own: the same files, author and second would make the very commit it is compared with.
    git(forged, 'commit', '-q', '--amend', '-m', 'other')
    git(forged, 'update-ref', resultRef, 'HEAD')
    git(forged, 'bundle', 'create', '-q', request.bundlePath, resultRef)
    const claimedCommit = git(forged, 'rev-parse', 'HEAD')
    await expect(repository.accept({ ...request, claimedCommit })).rejects.toMatchObject({
      code: 'ResultRejected',
      message: expect.stringMatching(/does not build on the base/) as string,
    })
  })

  it('a bundle with other refs is rejected', async () => {
    const { request, prepared } = await roundTrip(makeRepository('refs'), 'work', (repo) =>
      writeFileSync(join(repo, 'b'), 'x'),
    )
    await expect(repository.accept({ ...request, bundlePath: prepared.bundlePath })).rejects.toMatchObject({
      code: 'ResultRejected',
      message: expect.stringContaining('carries other refs than the result') as string,
    })
  })

  it('garbage is rejected', async () => {
    const { request } = await roundTrip(makeRepository('garbage'), 'work', (repo) =>
      writeFileSync(join(repo, 'b'), 'x'),
    )
    writeFileSync(request.bundlePath, 'not a bundle')
    await expect(repository.accept(request)).rejects.toMatchObject({
      code: 'ResultRejected',
      message: expect.stringContaining('it is not a git bundle') as string,
    })
  })

  it('a commit other than the announced one is rejected', async () => {
    const { request } = await roundTrip(makeRepository('lied'), 'work', (repo) => writeFileSync(join(repo, 'b'), 'x'))
    await expect(repository.accept({ ...request, claimedCommit: '0'.repeat(40) })).rejects.toMatchObject({
      code: 'ResultRejected',
      message: expect.stringContaining(`announced ${'0'.repeat(40)} but sent ${request.claimedCommit}`) as string,
    })
  })

  it('a .git directory inside a tree is rejected', async () => {
    const { request } = await roundTrip(makeRepository('evil'), 'work', (repo) => {
      const blob = execFileSync('git', ['hash-object', '-w', '--stdin'], {
        cwd: repo,
        env: { ...process.env, ...id },
        input: 'x',
        encoding: 'utf8',
      }).trim()
      const inner = execFileSync('git', ['mktree'], {
        cwd: repo,
        env: { ...process.env, ...id },
        input: `100644 blob ${blob}\tconfig\n`,
        encoding: 'utf8',
      }).trim()
      const tree = execFileSync('git', ['mktree'], {
        cwd: repo,
        env: { ...process.env, ...id },
        input: `040000 tree ${inner}\t.git\n`,
        encoding: 'utf8',
      }).trim()
      const commit = git(repo, 'commit-tree', tree, '-p', 'HEAD', '-m', 'evil')
      git(repo, 'update-ref', 'refs/heads/work', commit)
      git(repo, 'symbolic-ref', 'HEAD', 'refs/heads/work')
      git(repo, 'read-tree', '--empty')
      git(repo, 'update-index', '--add', '--cacheinfo', `100644,${blob},ok.txt`)
    })
    await expect(repository.accept(request)).rejects.toMatchObject({
      code: 'ResultRejected',
      message: expect.stringMatching(/hasDotgit|contains '\.git'/) as string,
    })
  })
})
