import { execFileSync, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFullSize } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createGit, createRepository, type Repository, writeGlobalConfig } from '../../packages/tasks/src/index.js'
import { resultRef } from '../../packages/tasks/src/repository/quarantine.js'
import { bundle, commit, tree, whole } from './crafted-pack.js'

const signal = new AbortController().signal
const isRoot = process.getuid?.() === 0
const stranger = 54_321
let directory: string
let marker: string
let program: string
let count = 0

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, GIT_TERMINAL_PROMPT: '0' },
  })

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-config-'))
  marker = join(directory, 'ran')
  program = join(directory, 'program')
  writeFileSync(program, `#!/bin/sh\ntouch ${marker}\nexit 1\n`, { mode: 0o755 })
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function makeRepository(...initOptions: string[]): { path: string; base: string } {
  const path = join(directory, `repository-${count++}`)
  git(directory, 'init', '-q', '-b', 'main', ...initOptions, path)
  writeFileSync(join(path, 'a.txt'), 'one\n')
  git(path, 'add', '.')
  git(path, 'commit', '-qm', 'base')
  return { path, base: git(path, 'rev-parse', 'HEAD').trim() }
}

async function openRepository(env: NodeJS.ProcessEnv = process.env): Promise<Repository> {
  const globalConfig = await writeGlobalConfig(mkdtempSync(join(directory, 'config-')), env)
  return createRepository({
    git: createGit({ globalConfig, env }),
    mirrorsDirectory: mkdtempSync(join(directory, 'm-')),
  })
}

/** Takes a repository in, works on it and publishes, as a task does. Answers the commit that was published. */
async function runTask(url: string, base: string, branch = 'work', env?: NodeJS.ProcessEnv): Promise<string> {
  const repository = await openRepository(env)
  const taskDirectory = mkdtempSync(join(directory, 'task-'))
  await repository.prepare({ url, newBranch: branch, taskDirectory, signal })
  const blob = whole('blob', Buffer.from(`work ${count}\n`))
  const root = whole('tree', tree([{ mode: '100644', name: 'b.txt', id: blob.id }]))
  const top = whole('commit', commit(root.id, base, 'work'))
  const bundlePath = join(taskDirectory, 'out.bundle')
  const refs = [{ name: resultRef, id: top.id }]
  writeFileSync(bundlePath, bundle({ prerequisite: base, refs, objects: [blob, root, top] }))
  await repository.accept({ url, taskDirectory, bundlePath, baseCommit: base, claimedCommit: top.id, signal })
  await repository.publish({ url, taskDirectory, commit: top.id, branch, signal })
  return top.id
}

function ran(): boolean {
  const did = existsSync(marker)
  rmSync(marker, { force: true })
  return did
}

interface Row {
  key: string
  config: (path: string) => string
  /** What makes git itself run it. */
  control?: (path: string) => string[]
}

const section = (name: string, ...lines: string[]): string =>
  `[${name}]\n${lines.map((line) => `\t${line}\n`).join('')}`

const rows: Row[] = [
  {
    key: 'core.alternateRefsCommand',
    config: (path) => {
      const other = makeRepository()
      writeFileSync(join(path, '.git/objects/info/alternates'), `${other.path}/.git/objects\n`)
      return section('core', `alternateRefsCommand = ${program}`)
    },
    control: () => ['fetch', makeRepository().path, 'main'],
  },
  { key: 'core.fsmonitor', config: () => section('core', `fsmonitor = ${program}`), control: () => ['status'] },
  {
    key: 'core.gitProxy with url.insteadOf',
    config: () => section('core', `gitProxy = ${program}`) + section('url "git://127.0.0.1:9/"', 'insteadOf = /'),
    control: () => ['fetch', '/anything', 'main'],
  },
  {
    key: 'core.sshCommand with url.insteadOf',
    config: () => section('core', `sshCommand = ${program}`) + section('url "ssh://127.0.0.1:9/"', 'insteadOf = /'),
    control: () => ['-c', 'ssh.variant=ssh', 'fetch', '/anything', 'main'],
  },
  {
    key: 'protocol.ext.allow with url.insteadOf',
    config: () => section('protocol "ext"', 'allow = always') + section(`url "ext::${program} "`, 'insteadOf = /'),
    control: () => ['fetch', '/anything', 'main'],
  },
  {
    key: 'credential.helper',
    config: () => section('credential', `helper = ${program}`),
    control: () => ['credential', 'approve'],
  },
  {
    key: 'core.hooksPath',
    config: () => {
      const hooks = mkdtempSync(join(directory, 'hooks-'))
      for (const name of ['reference-transaction', 'update', 'pre-receive', 'post-receive', 'post-update'])
        writeFileSync(join(hooks, name), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
      return section('core', `hooksPath = ${hooks}`)
    },
    control: () => ['update-ref', 'refs/heads/other', 'HEAD'],
  },
  {
    key: 'a hook in .git/hooks',
    config: (path) => {
      mkdirSync(join(path, '.git/hooks'), { recursive: true })
      for (const name of ['reference-transaction', 'update', 'pre-receive', 'post-receive'])
        writeFileSync(join(path, '.git/hooks', name), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
      return ''
    },
    control: () => ['update-ref', 'refs/heads/other', 'HEAD'],
  },
  {
    key: 'include.path',
    config: () => {
      writeFileSync(join(directory, 'included'), section('core', `fsmonitor = ${program}`))
      return section('include', `path = ${directory}/included`)
    },
    control: () => ['status'],
  },
  {
    key: 'includeIf',
    config: () => {
      writeFileSync(join(directory, 'included'), section('core', `fsmonitor = ${program}`))
      return section('includeIf "gitdir:/"', `path = ${directory}/included`)
    },
    control: () => ['status'],
  },
  {
    key: 'extensions.worktreeConfig',
    config: (path) => {
      writeFileSync(join(path, '.git/config.worktree'), section('core', `fsmonitor = ${program}`))
      return section('core', 'repositoryFormatVersion = 1') + section('extensions', 'worktreeConfig = true')
    },
    control: () => ['status'],
  },
  {
    key: 'alias',
    config: () => section('alias', `fetch = !${program}`, `up = !${program}`),
    control: () => ['up'],
  },
  {
    key: 'diff.external',
    config: () => section('diff', `external = ${program}`),
    control: () => ['diff', 'HEAD~0^{tree}', gitEmptyTree],
  },
  {
    key: 'filter and attributes',
    config: (path) => {
      writeFileSync(join(path, '.git/info/attributes'), '* filter=x diff=x\n')
      writeFileSync(join(path, 'a.txt'), 'changed\n')
      return (
        section('filter "x"', `clean = ${program}`, `smudge = ${program}`) +
        section('diff "x"', `textconv = ${program}`)
      )
    },
    control: () => ['add', 'a.txt'],
  },
  {
    key: 'gpg.program with commit.gpgSign and tag.gpgSign',
    config: () =>
      section('gpg', `program = ${program}`) + section('commit', 'gpgSign = true') + section('push', 'gpgSign = true'),
    control: () => ['commit', '--allow-empty', '-m', 'x'],
  },
  {
    key: 'core.editor',
    config: () => section('core', `editor = ${program}`),
    control: () => ['commit', '--allow-empty'],
  },
  {
    key: 'core.pager',
    config: () =>
      section('core', `pager = ${program}`) + section('pager', 'fetch = true', 'rev-parse = true', 'config = true'),
  },
  { key: 'core.askPass', config: () => section('core', `askPass = ${program}`) },
  { key: 'uploadpack.packObjectsHook', config: () => section('uploadpack', `packObjectsHook = ${program}`) },
  {
    key: 'remote.uploadpack of a promisor',
    config: (path) =>
      section(
        'remote "origin"',
        `url = ${path}`,
        `uploadpack = ${program}`,
        `receivepack = ${program}`,
        'promisor = true',
      ) +
      section('core', 'repositoryFormatVersion = 1') +
      section('extensions', 'partialClone = origin'),
    control: () => ['fetch', 'origin'],
  },
  {
    key: 'fetch.recurseSubmodules and submodule.update',
    config: () =>
      section('fetch', 'recurseSubmodules = true') + section('submodule "x"', `update = !${program}`, 'active = true'),
  },
  { key: 'maintenance and gc', config: () => section('gc', 'auto = 1', `recentObjectsHook = ${program}`) },
  { key: 'core.worktree', config: () => section('core', 'worktree = /') },
  { key: 'receive.procReceiveRefs', config: () => section('receive', 'procReceiveRefs = refs/heads') },
]

const gitEmptyTree = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

describe('what the .git/config of a local repository names is not run', () => {
  // The keys of other groups are tried together below.
  it.each(rows.filter(({ key }) => isFullSize || /core|hook/.test(key)))('$key', async ({ key, config, control }) => {
    for (const scheme of ['', 'file://']) {
      const { path, base } = makeRepository()
      appendFileSync(join(path, '.git/config'), config(path))
      ran()
      const published = await runTask(`${scheme}${path}`, base)
      // A push to a file:// address of one's own is a push: its hooks are rules of that repository.
      const isOwnHook = scheme !== '' && /hook/.test(key) && /core|\.git\/hooks/.test(key)
      expect(ran(), `${scheme || 'path'}: the program ran`).toBe(isOwnHook)
      expect(execFileSync('cat', [join(path, '.git/refs/heads/work')], { encoding: 'utf8' }).trim()).toBe(published)
      if (!control) continue
      const options = { cwd: path, input: 'protocol=https\nhost=x\nusername=u\npassword=p\n\n', env: author }
      spawnSync('git', control(path), options)
      expect(ran(), 'control: git itself runs it').toBe(true)
    }
  })
})

/** The settings that are taken over, with values of their own: a program's name would only be a wrong one. */
const storage =
  /^(core\.(bare|worktree|compression|logallrefupdates|repositoryformatversion|sharedrepository)|extensions\..*|include.*|.*\.(hiderefs|fsckobjects|maxinputsize)|receive\.deny.*)$/i

/** What git calls a setting that may name a program, or an address or place that leads to one. */
const programs =
  /(ask|browser|clean|client|cmd|command|driver|editor|exec|external|file|helper|hook|insteadof|monitor|pack|pager|path|process|program|proxy|push|run|server|smtp|smudge|ssh|textconv|tool|update|url|uri|vcs|viewer)/i

it('every key of git’s own list that could name a program does, for every name it can be about, and nothing runs', async () => {
  const known = git(directory, 'help', '--config').split('\n')
  const keys = known.filter(
    (key) => /^[a-z]+\.[^_']*[a-z*>]$/i.test(key) && !storage.test(key) && (programs.test(key) || /\.\*$/.test(key)),
  )
  expect(keys).toEqual(expect.arrayContaining(['core.sshCommand', 'gpg.<format>.program', 'filter.<driver>.smudge']))
  // Names that git or this repository uses, so that what is set is also about something.
  const names = ['origin', 'main', 'work', 'x', 'fetch', 'ssh']
  const settings = keys.flatMap((key) =>
    (/[<*]/.test(key) ? names : ['']).map((name) => key.replaceAll(/<[^>]+>|\*/g, name)),
  )
  const { path, base } = makeRepository()
  const own = readFileSync(join(path, '.git/config'), 'utf8')
  const write = (kept: readonly string[]): void => {
    const lines = kept.map((setting) => {
      const [first = '', ...rest] = setting.split('.')
      const last = rest.pop() ?? ''
      return section(rest.length > 0 ? `${first} "${rest.join('.')}"` : first, `${last} = ${program}`)
    })
    writeFileSync(join(path, '.git/config'), own + lines.join(''))
  }
  // What git does not even read with such a value (a switch, a number) names no program.
  let kept = settings
  for (;;) {
    write(kept)
    const { status, stderr } = spawnSync('git', ['rev-parse', '--git-dir'], { cwd: path, encoding: 'utf8' })
    if (status === 0) break
    const refused = /for '([^']+)'/.exec(stderr)?.[1] ?? /'([^']+\.[^']+)'/.exec(stderr)?.[1]?.toLowerCase()
    const rest = kept.filter((setting) => setting.toLowerCase() !== refused?.toLowerCase())
    expect(rest.length, stderr).toBeLessThan(kept.length)
    kept = rest
  }
  ran()
  const published = await runTask(path, base)
  expect(ran(), 'the program ran').toBe(false)
  expect(readFileSync(join(path, '.git/refs/heads/work'), 'utf8').trim()).toBe(published)
  // The control: the same file makes git itself run it, or refuse to work at all.
  const { status } = spawnSync('git', ['status'], { cwd: path, env: author })
  expect(ran() || status !== 0).toBe(true)
})

const author = {
  ...process.env,
  GIT_AUTHOR_NAME: 'T',
  GIT_AUTHOR_EMAIL: 't@localhost',
  GIT_COMMITTER_NAME: 'T',
  GIT_COMMITTER_EMAIL: 't@localhost',
  GIT_EDITOR: undefined,
  EDITOR: undefined,
  VISUAL: undefined,
} as unknown as NodeJS.ProcessEnv

describe.skipIf(!isRoot)('a repository of another user (as root)', () => {
  const giveAway = (path: string): void => {
    execFileSync('chown', ['-R', `${stranger}:${stranger}`, path])
  }

  it.each(['', 'file://'])('is refused with what to do about it: %spath', async (scheme) => {
    const { path, base } = makeRepository()
    appendFileSync(
      join(path, '.git/config'),
      section('core', `fsmonitor = ${program}`, `alternateRefsCommand = ${program}`),
    )
    giveAway(path)
    await expect(runTask(`${scheme}${path}`, base)).rejects.toMatchObject({
      code: 'RepositoryUntrusted',
      message: `${path} belongs to another user than the one Corral runs as`,
      hint: expect.stringContaining(`git config --global --add safe.directory '${path}'`),
    })
    expect(ran()).toBe(false)
  })

  it('is refused when only its .git is theirs', async () => {
    const { path, base } = makeRepository()
    chownSync(join(path, '.git'), stranger, stranger)
    await expect(runTask(path, base)).rejects.toMatchObject({ code: 'RepositoryUntrusted' })
  })

  it('is taken when the user said so in safe.directory', async () => {
    const { path, base } = makeRepository()
    giveAway(path)
    const config = join(directory, 'trusting')
    writeFileSync(config, section('safe', `directory = ${path}`))
    const published = await runTask(path, base, 'work', { ...process.env, GIT_CONFIG_GLOBAL: config })
    expect(git(path, '-c', `safe.directory=${path}`, 'rev-parse', 'work').trim()).toBe(published)
  })

  it('is taken when that user called sudo, as git does', async () => {
    const { path, base } = makeRepository()
    giveAway(path)
    const published = await runTask(path, base, 'work', { ...process.env, SUDO_UID: String(stranger) })
    expect(git(path, '-c', `safe.directory=${path}`, 'rev-parse', 'work').trim()).toBe(published)
  })
})

describe('kinds of local repositories', () => {
  const heads = (path: string): string => git(path, 'rev-parse', 'refs/heads/work').trim()

  it('a linked work tree: read from its own HEAD, written beside its branch', async () => {
    const { path } = makeRepository()
    const linked = join(directory, `linked-${count++}`)
    git(path, 'worktree', 'add', '-q', '-b', 'side', linked)
    git(linked, 'commit', '-q', '--allow-empty', '-m', 'on the side')
    const base = git(linked, 'rev-parse', 'HEAD').trim()
    const published = await runTask(linked, base)
    expect(heads(path)).toBe(published)
    await expect(runTask(linked, base, 'side')).rejects.toMatchObject({ code: 'BranchCheckedOut' })
    await expect(runTask(linked, git(path, 'rev-parse', 'main').trim(), 'main')).rejects.toMatchObject({
      message: expect.stringMatching(/checked out/),
    })
    expect(git(linked, 'status', '--porcelain')).toBe('')
  })

  it('a bare one, by path and by file://', async () => {
    for (const scheme of ['', 'file://']) {
      const { path, base } = makeRepository()
      const bare = join(directory, `bare-${count++}.git`)
      git(directory, 'clone', '-q', '--bare', path, bare)
      const published = await runTask(`${scheme}${bare}`, base)
      expect(heads(bare)).toBe(published)
    }
  })

  it('one whose refs are packed, and one that borrows objects by a relative path', async () => {
    const { path, base } = makeRepository()
    git(path, 'pack-refs', '--all')
    const published = await runTask(path, base)
    expect(heads(path)).toBe(published)
    const borrower = join(directory, `borrower-${count++}`)
    git(directory, 'clone', '-q', '--shared', path, borrower)
    writeFileSync(join(borrower, '.git/objects/info/alternates'), `../../../${path.split('/').at(-1)}/.git/objects\n`)
    const lent = await runTask(borrower, base)
    expect(heads(borrower)).toBe(lent)
  })

  it('the branch that is checked out is left alone', async () => {
    const { path, base } = makeRepository()
    await expect(runTask(path, base, 'main')).rejects.toMatchObject({ message: expect.stringMatching(/checked out/) })
    expect(git(path, 'rev-parse', 'HEAD').trim()).toBe(base)
  })

  it('no view of it stays behind', async () => {
    const { path } = makeRepository()
    const mirrorsDirectory = mkdtempSync(join(directory, 'm-'))
    const globalConfig = await writeGlobalConfig(mkdtempSync(join(directory, 'config-')), process.env)
    const repository = createRepository({ git: createGit({ globalConfig, env: process.env }), mirrorsDirectory })
    await repository.prepare({ url: path, taskDirectory: mkdtempSync(join(directory, 'task-')), signal })
    expect(readdirSync(mirrorsDirectory).filter((name) => name.startsWith('view-'))).toEqual([])
  })
})
