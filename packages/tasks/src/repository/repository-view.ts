import { access, copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Git, GitError } from '../git/git.js'
import { TaskError } from '../task-error.js'
import { FileMemory } from './file-memory.js'
import { readFailure } from './git-failure.js'
import { checkLocalRepository, gitDirectory, localPathOf } from './local-repository.js'
import { ownReceiveHooks, type ReceiveHooks } from './receive-hooks.js'
import type { RepositoryLocation } from './repository-url.js'
import { shellQuote } from './shell-quote.js'

/** A repository and what git is told to find it by. */
export type ReachableRepository = RepositoryLocation & {
  address: string
  /** The directory of its objects and refs, where that is on this machine. */
  directory?: string | undefined
  /** Hooks of the repository that a push must run. */
  hooks?: ReceiveHooks | undefined
}

/**
 * Settings of a repository that are about how it is stored and what it takes. Everything else in its configuration is
 * left out, and with it every key that names a program: hooks, proxies, transports, helpers, filters, includes, aliases.
 */
const keptSettings = new Set([
  'core.compression',
  'core.logallrefupdates',
  'core.repositoryformatversion',
  'core.sharedrepository',
  'extensions.objectformat',
  'extensions.refstorage',
  'receive.denycurrentbranch',
  'receive.denydeletes',
  'receive.denynonfastforwards',
  'receive.fsckobjects',
  'receive.hiderefs',
  'receive.maxinputsize',
  'transfer.fsckobjects',
  'transfer.hiderefs',
  'uploadpack.hiderefs',
])

/** What of a repository's directory is shared as it is: objects, refs, and the facts git keeps beside them. */
const sharedNames = ['objects', 'refs', 'packed-refs', 'reftable', 'shallow', 'logs', 'worktrees'] as const

/**
 * Opens a repository for `use`. One on this machine is seen through a git directory of ours: its objects and refs by
 * links, its configuration reduced to the settings above. So git works in it without running anything it names. A
 * repository that git itself would not trust, because it belongs to another user, is refused with git's own hint.
 *
 * A `file://` address is a remote: a push to it runs the hooks a push runs, in the repository itself, since hooks read
 * its configuration. It does so only where the user of the platform owns repository and hooks; `purpose: 'write'` refuses
 * every other one that has hooks.
 */
export async function withReachable<T>(
  options: {
    git: Git
    location: RepositoryLocation
    purpose: 'read' | 'write'
    directory: string
    signal: AbortSignal
  },
  use: (repository: ReachableRepository) => Promise<T>,
): Promise<T> {
  const { location } = options
  const path = localPathOf(location)
  if (path === undefined) return use({ ...location, address: location.url })
  const facts = await trustedFacts(options.git, path, options.signal)
  if (options.purpose === 'write' && location.kind === 'remote') {
    const hooks = await ownReceiveHooks(options.git, { path, common: facts.common }, options.signal)
    if (hooks) return use({ ...location, address: `file://${facts.common}`, directory: facts.common, hooks })
  }
  const view = await openView({ ...options, facts })
  try {
    const address = location.kind === 'local' ? view : `file://${view}`
    return await use({ ...location, address, directory: facts.common })
  } finally {
    await rm(view, { recursive: true, force: true })
  }
}

/** The directory with the configuration and submodules of a repository on this machine; undefined for one elsewhere. */
export async function gitDirectoryOf(
  git: Git,
  location: RepositoryLocation,
  signal: AbortSignal,
): Promise<string | undefined> {
  const path = localPathOf(location)
  return path === undefined ? undefined : (await trustedFacts(git, path, signal)).common
}

async function openView(options: {
  git: Git
  facts: Facts
  purpose: 'read' | 'write'
  directory: string
  signal: AbortSignal
}): Promise<string> {
  const { git, facts, signal } = options
  const settings = await storedSettings(git, join(facts.common, 'config'), signal)
  await mkdir(options.directory, { recursive: true, mode: 0o700 })
  const view = await mkdtemp(join(options.directory, 'view-'))
  const isLogged = settings.find(([key]) => key === 'core.logallrefupdates')?.[1] ?? String(!facts.isBare)
  if (options.purpose === 'write' && !/^(false|no|off|0)$/i.test(isLogged))
    await mkdir(join(facts.common, 'logs'), { recursive: true })
  const link = async (name: string): Promise<void> => {
    const target = join(facts.common, name)
    if (await exists(target)) await symlink(target, join(view, name))
  }
  await Promise.all([
    ...sharedNames.map(link),
    // A linked work tree has a HEAD of its own, from which one reads; the branch that must not be written is checked out
    // in the main work tree, or in one of `worktrees`.
    copyFile(join(options.purpose === 'read' ? facts.gitDir : facts.common, 'HEAD'), join(view, 'HEAD')),
    writeFile(join(view, 'config'), viewConfig(settings, facts.isBare), { mode: 0o600 }),
  ])
  return view
}

interface Facts {
  gitDir: string
  common: string
  isBare: boolean
}

/** Where the repository keeps its things, as git says, if git trusts it. */
async function trustedFacts(git: Git, path: string, signal: AbortSignal): Promise<Facts> {
  await checkLocalRepository(path)
  const found = (await gitDirectory(path)) ?? path
  const cwd = basename(found) === '.git' ? dirname(found) : found
  // A linked work tree has the configuration of another directory.
  if (await exists(join(found, 'commondir'))) return askForFacts(git, cwd, path, signal)
  // What git looks at. Where all of it is ours, git trusts it whatever the user's configuration says.
  const files = ['config', 'config.worktree'].map((name) => join(found, name))
  return knownFacts.get([cwd, join(cwd, '.git'), found, ...files], { owner: process.geteuid?.() ?? -1 }, () =>
    askForFacts(git, cwd, path, signal),
  )
}

const knownFacts = new FileMemory<Facts>()

async function askForFacts(git: Git, cwd: string, path: string, signal: AbortSignal): Promise<Facts> {
  // `rev-parse` reads the configuration and runs nothing of it; the check of ownership comes first.
  const flags = ['--path-format=absolute', '--git-dir', '--git-common-dir', '--is-bare-repository']
  try {
    const options = { cwd, signal, timeoutMs: 60_000, env: { GIT_CEILING_DIRECTORIES: dirname(cwd) } }
    const { stdout } = await git(['rev-parse', ...flags], options)
    const [gitDir = '', common = '', isBare] = stdout.trimEnd().split('\n')
    return { gitDir, common, isBare: isBare === 'true' }
  } catch (error) {
    if (error instanceof GitError && /dubious ownership/i.test(error.stderr)) throw untrusted(cwd, error)
    throw readFailure(error, path)
  }
}

function untrusted(path: string, cause: GitError): TaskError {
  return new TaskError('RepositoryUntrusted', `${path} belongs to another user than the one Corral runs as`, {
    hint: `If you trust it: \`git config --global --add safe.directory ${shellQuote(path)}\` as the user who runs Corral, or change its owner.`,
    cause,
  })
}

const knownSettings = new FileMemory<[string, string][]>()

/** The kept settings of one configuration file, read again when it changed. Nothing it includes is read. */
async function storedSettings(git: Git, path: string, signal: AbortSignal): Promise<[string, string][]> {
  if (!(await exists(path))) return []
  return knownSettings.get([path], {}, () => readSettings(git, path, signal))
}

async function readSettings(git: Git, path: string, signal: AbortSignal): Promise<[string, string][]> {
  const args = ['config', '--file', path, '--no-includes', '--null', '--list']
  const { stdout } = await git(args, { cwd: '/', signal, timeoutMs: 60_000 })
  return stdout
    .split('\0')
    .map((entry): [string, string] => {
      const end = entry.indexOf('\n')
      return end < 0 ? [entry, 'true'] : [entry.slice(0, end), entry.slice(end + 1)]
    })
    .filter(
      ([key, value]) => keptSettings.has(key) && !(key === 'receive.denycurrentbranch' && value === 'updateInstead'),
    )
}

function viewConfig(settings: readonly (readonly [string, string])[], isBare: boolean): string {
  // A submodule stands at any commit, which need not be on a branch.
  const ours = [
    ['core.bare', String(isBare)],
    ['uploadpack.allowAnySHA1InWant', 'true'],
    // Nothing goes over a network: looking for similar objects would cost seconds and save a little disk.
    ['pack.window', '0'],
  ] as const
  const lines = [...settings, ...ours].map(([key, value]) => {
    const [section, name] = key.split('.', 2)
    const quoted = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    return `[${section}]\n\t${name} = "${quoted}"\n`
  })
  return lines.join('')
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
