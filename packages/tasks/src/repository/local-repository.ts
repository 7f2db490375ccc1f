import type { Stats } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TaskError } from '../task-error.js'
import { branchMissing, repositoryMissing } from './git-failure.js'
import type { RepositoryLocation } from './repository-url.js'
import { shellQuote } from './shell-quote.js'

/** The directory a repository on this machine is in; undefined for one that lies elsewhere. */
export function localPathOf(location: RepositoryLocation): string | undefined {
  if (location.kind === 'local') return location.path
  return location.transport === 'file' ? fileURLToPath(location.url) : undefined
}

/** Refuses a path without a git repository. Reads a few small files, so that a request may wait for it. */
export async function checkLocalRepository(path: string): Promise<string> {
  const git = await gitDirectory(path)
  if (git) return git
  const found = await find(path)
  if (!found) throw repositoryMissing(path)
  const what = found.isDirectory() ? 'a directory without a git repository' : 'a file, not a git repository'
  throw new TaskError('RepositoryNotFound', `${path} is ${what}`, {
    hint: 'Give the top directory of the repository; make one with `git init` and a first commit.',
  })
}

/**
 * Refuses what can be seen to fail without asking git: no repository at the path, no commit, no such base branch, or a
 * new branch that is checked out. What it cannot judge (another ref storage) it lets pass.
 */
export async function checkLocalRequest(
  path: string,
  { baseBranch, newBranch }: { baseBranch?: string | undefined; newBranch?: string | undefined },
): Promise<void> {
  const git = await checkLocalRepository(path)
  if (baseBranch && !(await hasBranch(git, baseBranch))) throw await noBranch(git, baseBranch, path)
  const head = await headOf(git)
  if (!baseBranch && head && !(await hasBranch(git, head)))
    throw new TaskError('RepositoryEmpty', `${path} has no commit on its branch "${head}" to start from`, {
      hint: 'Make a first commit, or name a base branch that has one.',
    })
  if (newBranch && (await checkedOut(git)).includes(newBranch))
    throw new TaskError('BranchCheckedOut', `branch "${newBranch}" is checked out in ${path}`, {
      hint: 'Choose another name for the new branch, or check another one out there.',
    })
}

/** The places git looks at for a path, in its order. */
export async function gitDirectory(path: string): Promise<string | undefined> {
  for (const candidate of [join(path, '.git'), path, `${path}.git/.git`, `${path}.git`]) {
    const directory = await linkedDirectory(candidate)
    if (directory && (await find(join(directory, 'HEAD')))) return directory
  }
  return undefined
}

/** A work tree of its own, or a submodule, has a file `.git` that says where its repository is. */
async function linkedDirectory(path: string): Promise<string | undefined> {
  const info = await find(path)
  if (!info?.isFile()) return info?.isDirectory() ? path : undefined
  const target = /^gitdir: (.+)$/m.exec(await read(path))?.[1]?.trim()
  return target && (isAbsolute(target) ? target : resolve(dirname(path), target))
}

/** Where work trees of one repository share what they share. */
async function commonDirectory(git: string): Promise<string> {
  const shared = (await read(join(git, 'commondir'))).trim()
  return shared ? resolve(git, shared) : git
}

/** The branch a HEAD names; undefined for one that names a commit. */
async function headOf(git: string): Promise<string | undefined> {
  return /^ref: refs\/heads\/(.+)$/m.exec(await read(join(git, 'HEAD')))?.[1]?.trim()
}

/** The branches of every work tree of the repository. */
async function checkedOut(git: string): Promise<(string | undefined)[]> {
  const common = await commonDirectory(git)
  const linked = await readdir(join(common, 'worktrees')).catch(() => [])
  const trees = linked.map((name) => join(common, 'worktrees', name))
  return Promise.all([...((await isBare(common)) ? [] : [common]), ...trees].map(headOf))
}

/** Only what the configuration of the repository itself says plainly counts. */
async function isBare(common: string): Promise<boolean> {
  return /^\s*bare\s*=\s*true\s*$/im.test(await read(join(common, 'config')))
}

async function hasBranch(git: string, branch: string): Promise<boolean> {
  const common = await commonDirectory(git)
  if (await find(join(common, 'reftable'))) return true
  return hasRef(common, `refs/heads/${branch}`)
}

async function hasRef(common: string, ref: string): Promise<boolean> {
  if ((await find(join(common, ref)))?.isFile()) return true
  const packed = await read(join(common, 'packed-refs'))
  return packed.split('\n').some((line) => line.endsWith(` ${ref}`))
}

/** A task starts from a branch. For another name that git knows, the command that makes a branch of it. */
async function noBranch(git: string, name: string, path: string): Promise<TaskError> {
  const common = await commonDirectory(git)
  const make = (branch: string, from: string): string =>
    `Make it one with \`git -C ${shellQuote(path)} branch ${shellQuote(branch)} ${shellQuote(from)}\`, then name "${branch}".`
  const hint = async (): Promise<string | undefined> => {
    const short = /^(?:heads|tags)\/(.+)$/.exec(name)?.[1]
    if (name.startsWith('heads/') && short && (await hasBranch(git, short))) return `Name the branch alone: "${short}".`
    const tag = name.startsWith('tags/') && short ? short : name
    if (await hasRef(common, `refs/tags/${tag}`)) return `"${tag}" is a tag. ${make(`from-${tag}`, tag)}`
    for (const remote of await remotesOf(common)) {
      const isFull = name.startsWith(`${remote}/`)
      const branch = isFull ? name.slice(remote.length + 1) : name
      if (!(await hasRef(common, `refs/remotes/${remote}/${branch}`))) continue
      if (isFull && (await hasBranch(git, branch)))
        return `The branch is "${branch}" here; "${name}" is where it was last seen in the remote "${remote}".`
      return `It is a branch of the remote "${remote}". ${make(branch, `${remote}/${branch}`)}`
    }
    return /^[0-9a-f]{7,40}$/.test(name) ? `It looks like a commit. ${make(`from-${name}`, name)}` : undefined
  }
  return branchMissing(name, path, await hint())
}

/** The remotes of which branches were fetched, under `refs/remotes` or in `packed-refs`. */
async function remotesOf(common: string): Promise<string[]> {
  const loose = await readdir(join(common, 'refs', 'remotes')).catch(() => [])
  const packed = (await read(join(common, 'packed-refs'))).matchAll(/ refs\/remotes\/([^/\n]+)\//g)
  return [...new Set([...loose, ...[...packed].map(([, remote = '']) => remote)])].sort()
}

/** What is not there; a path that may not be looked at is as good as missing, but says why. */
async function find(path: string): Promise<Stats | undefined> {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw new TaskError('RepositoryNotFound', `${path} cannot be read: ${error.message}`, { cause: error })
  })
}

/** The text of a small file, empty where there is none. */
async function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
