import { readdir, readFile, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { type Git, GitError } from '../git/git.js'
import { TaskError } from '../task-error.js'
import { branchConflict, branchTaken, isPushDenied, pushDenied } from './git-failure.js'
import { refsIn } from './listed-refs.js'
import { localPathOf } from './local-repository.js'
import { ownReceiveHooks } from './receive-hooks.js'
import { gitDirectoryOf, type ReachableRepository } from './repository-view.js'

export interface PushCheck {
  git: Git
  location: ReachableRepository
  /** The mirror, which has the base. */
  mirror: string
  /** Where the work will go. */
  branch: string
  /** Where the refs of `branchPatterns` stand, where that was asked before. */
  refs?: ReadonlyMap<string, string> | undefined
  /** Whether the work goes on top of the branch it starts from. */
  isBaseBranch: boolean
  /** The base, then commits of former attempts: a branch that stands at one of them holds no work of others. */
  own: readonly [base: string, ...more: string[]]
  signal: AbortSignal
}

/** Less room than this is none: a push writes a pack, an index and a ref. */
const minFreeBytes = 16 * 1024 * 1024

/**
 * Finds what would keep the work from being pushed before an agent works on it for an hour: a name that another branch is
 * in the way of, a branch with work of its own, one that is checked out, hooks of another user, no right to
 * push, no room. What it cannot ask it lets pass; the push itself decides.
 */
export async function checkPush(check: PushCheck): Promise<void> {
  await Promise.all([checkName(check), checkRights(check)])
  const path = localPathOf(check.location)
  if (path === undefined) return
  await checkHooks(check, path)
  await checkRoom(check)
  await checkNotCheckedOut(check)
}

/** A branch and what may be in its way, as patterns for `git ls-remote`. */
export function branchPatterns(branch: string): string[] {
  const ref = `refs/heads/${branch}`
  return [ref, `${ref}/*`, ...parentsOf(ref)]
}

/** Asks where a branch stands, and what may be in its way. */
async function listBranches({ git, location, branch, signal }: PushCheck): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await git(['ls-remote', location.address, ...branchPatterns(branch)], {
    signal,
    timeoutMs: 60_000,
  })
  return refsIn(stdout)
}

async function checkName(check: PushCheck): Promise<void> {
  const { git, location, mirror, branch, isBaseBranch, own, signal } = check
  const ref = `refs/heads/${branch}`
  const above = parentsOf(ref)
  const refs = check.refs ?? (await listBranches(check))
  const inTheWay = above.find((name) => refs.has(name)) ?? [...refs.keys()].find((name) => name.startsWith(`${ref}/`))
  if (inTheWay) throw branchConflict(branch, inTheWay.replace('refs/heads/', ''), location.url)
  const commit = refs.get(ref)
  if (!commit || isBaseBranch || own.includes(commit)) return
  try {
    await git(['merge-base', '--is-ancestor', commit, own[0]], { cwd: mirror, signal })
  } catch (error) {
    // Not an ancestor, or a commit the mirror of the base branch does not even have.
    throw branchTaken(branch, location.url, error)
  }
}

/** `refs/heads/a/b/c` → `refs/heads/a`, `refs/heads/a/b`: git keeps refs as files, of which none is a directory too. */
function parentsOf(ref: string): string[] {
  const parts = ref.split('/')
  return parts.slice(3).map((_, index) => parts.slice(0, 3 + index).join('/'))
}

/** Asks a remote for everything a push needs, and pushes nothing. */
async function checkRights({ git, location, mirror, branch, own, signal }: PushCheck): Promise<void> {
  if (location.kind === 'local' || location.transport === 'file') return
  const args = ['push', '--dry-run', '--force', '--no-verify', '--quiet', location.address]
  try {
    await git([...args, `${own[0]}:refs/heads/${branch}`], { cwd: mirror, signal, timeoutMs: 60_000 })
  } catch (error) {
    if (signal.aborted) throw error
    // A remote that is away now may be back by then.
    if (error instanceof GitError && isPushDenied(error.stderr)) throw pushDenied(location.url, error)
  }
}

/** A push to a `file://` address runs the hooks there, which must be the user's own. */
async function checkHooks({ git, location, signal }: PushCheck, path: string): Promise<void> {
  const common = location.kind === 'remote' ? await gitDirectoryOf(git, location, signal) : undefined
  if (common) await ownReceiveHooks(git, { path, common }, signal)
}

async function checkRoom({ location }: PushCheck): Promise<void> {
  const path = localPathOf(location) ?? ''
  const { bavail, bsize } = await statfs(path)
  if (bavail * bsize >= minFreeBytes) return
  throw new TaskError('DiskFull', `the disk of ${path} has no room for a branch: ${bavail * bsize} bytes are free`, {
    hint: 'Free space on the disk of the repository, then retry the task.',
  })
}

/** git does not move a branch under a work tree; a repository may be configured to take it all the same. */
async function checkNotCheckedOut({ location, branch }: PushCheck): Promise<void> {
  const view = location.address.replace(/^file:\/\//, '')
  const config = await readFile(join(view, 'config'), 'utf8')
  const takesIt = location.kind === 'remote' && /denycurrentbranch = "(ignore|warn|false)"/i.test(config)
  if (takesIt || /bare = "true"/.test(config)) return
  const trees = await readdir(join(view, 'worktrees')).catch(() => [])
  for (const name of ['HEAD', ...trees.map((tree) => join('worktrees', tree, 'HEAD'))]) {
    const head = await readFile(join(view, name), 'utf8').catch(() => '')
    if (head.trim() !== `ref: refs/heads/${branch}`) continue
    throw new TaskError('BranchCheckedOut', `branch "${branch}" of ${location.url} is checked out there`, {
      hint: 'Choose another name for the new branch, or check out another branch in the repository.',
    })
  }
}
