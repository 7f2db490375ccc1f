import { branchOf } from '../task-state/branch-of.js'
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ApplyHow, AppliedChange } from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import { phaseOf } from '../task-state/stages.js'
import { type Git, GitError } from '../git/git.js'
import { KeyedLock } from '../keyed-lock.js'
import { localPathOf } from '../repository/local-repository.js'
import { parseRepositoryUrl } from '../repository/repository-url.js'
import { TaskError } from '../task-error.js'

/** Brings the change of a task into the work tree of its repository, where that lies on this machine. */
export interface BringHome {
  /**
   * Merges the task's commit into the branch that is checked out, or leaves it there as edits that are not committed. Refuses
   * with 409 what it cannot do whole: then nothing is changed.
   */
  apply(task: Stored<AgentTask>, how: ApplyHow): Promise<AppliedChange>
}

export interface BringHomeOptions {
  git: Git
  /** Who commits a merge that is no fast-forward. */
  findIdentity?(path: string | undefined): Promise<{ name: string; email: string } | undefined>
}

/** What is looked at before anything is changed. */
export interface WorkTreeState {
  /** Undefined where HEAD names a commit and no branch. */
  readonly branch: string | undefined
  /** Files that are changed or that git does not know. */
  readonly uncommitted: readonly string[]
  /** A merge, rebase or the like is under way. */
  readonly isBusy: boolean
  readonly isOwn: boolean
  /** Settings of the repository that name programs git would run for files of the change. */
  readonly programs: readonly string[]
  /** `.gitattributes` that name filters: git without the user's configuration would write their files wrong. */
  readonly filtered: readonly string[]
  readonly hasCommit: boolean
}

/** Why a change is not brought into a work tree in this state; undefined where it may be. */
export function refusalOf(state: WorkTreeState, task: Stored<AgentTask>, top: string): TaskError | undefined {
  const id = task.metadata.name
  const byHand = { hint: `Take it in a shell: \`corral task apply ${id}\` or \`corral task checkout ${id}\`.` }
  const not = (why: string, options: { hint: string } = byHand): TaskError =>
    new TaskError('ApplyNotPossible', why, options)
  const base = task.status?.baseBranch ?? task.spec.baseBranch
  if (!state.isOwn) return not(`${top} belongs to another user than the one that runs the platform`)
  if (state.isBusy)
    return not(`a merge or rebase is going on in ${top}`, {
      hint: 'Finish it, or end it with `git merge --abort` or `git rebase --abort`.',
    })
  if (state.branch === undefined)
    return not(`no branch is checked out in ${top}`, { hint: 'Check one out with `git switch`.' })
  if (base !== undefined && state.branch !== base)
    return not(`${top} is on "${state.branch}", and the task started from "${base}"`, {
      hint: `Check it out with \`git switch ${base}\`, or take the change in a shell: \`corral task apply ${id}\`.`,
    })
  if (state.programs.length > 0)
    return not(`the configuration of ${top} runs programs when files are written: ${state.programs.join(', ')}`)
  if (state.filtered.length > 0) return not(`files of ${top} go through filters: ${state.filtered.join(', ')}`)
  const count = state.uncommitted.length
  if (count > 0)
    return new TaskError('WorkTreeDirty', `${top} has ${count === 1 ? '1 file' : `${count} files`} not committed`, {
      hint: 'Commit or stash them (`git stash -u`), then try again.',
      details: { files: state.uncommitted.slice(0, 20) },
    })
  if (!state.hasCommit) return not(`the commit of task ${id} is not in ${top}`)
  return undefined
}

export function createBringHome({ git: run, findIdentity }: BringHomeOptions): BringHome {
  const trees = new KeyedLock()
  return {
    async apply(task, how) {
      const top = workTreeOf(task)
      return trees.run(top, async () => {
        const git = gitIn(run, top)
        const state = await look(git, top, task)
        const refusal = refusalOf(state, task, top)
        if (refusal) throw refusal
        const identity = await findIdentity?.(top)
        return bring(git, { task, how, top, branch: state.branch ?? '', identity })
      })
    },
  }
}

type TopGit = (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<string>

/** Hooks and the file watcher are the only programs a repository names that git runs without being asked by a file. */
function gitIn(run: Git, top: string): TopGit {
  const options = ['-c', 'core.fsmonitor=false', '-c', 'submodule.recurse=false', '-c', 'commit.gpgSign=false']
  return async (args, env) =>
    (await run([...options, ...args], { cwd: top, timeoutMs: 5 * 60_000, ...(env ? { env } : {}) })).stdout
}

const branchNameOf = (task: Stored<AgentTask>): string => task.status?.branch ?? branchOf(task)

function workTreeOf(task: Stored<AgentTask>): string {
  const id = task.metadata.name
  const { commit, pushed } = task.status ?? {}
  if (!commit || !pushed)
    throw new TaskError('ApplyNotPossible', `task ${id} has no branch to bring home (${phaseOf(task)})`, {
      hint: task.status?.outcome === 'no_changes' ? 'It left the repository as it was.' : `See \`corral task get ${id}\`.`,
    })
  const top = localPathOf(parseRepositoryUrl(task.spec.repository.url))
  if (top === undefined)
    throw new TaskError('ApplyNotPossible', `the repository of task ${id} is not on the machine of the platform`, {
      hint: `Take it where your clone is: \`corral task apply ${id}\`.`,
    })
  if (!existsSync(join(top, '.git')))
    throw new TaskError('ApplyNotPossible', `${top} has no work tree`, {
      hint: `Its branch "${branchNameOf(task)}" is there: fetch it into a clone.`,
    })
  return top
}

async function look(git: TopGit, top: string, task: Stored<AgentTask>): Promise<WorkTreeState> {
  const { commit = '' } = task.status ?? {}
  const isOwn = (await stat(top)).uid === process.getuid?.()
  // git itself refuses to read a repository of another user.
  if (!isOwn)
    return { isOwn, isBusy: false, branch: '', uncommitted: [], programs: [], filtered: [], hasCommit: true }
  const text = (args: readonly string[]): Promise<string> => git(args).catch(() => '')
  const directory = (await git(['rev-parse', '--path-format=absolute', '--git-dir'])).trim()
  const marks = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply', 'index.lock']
  const programs = [
    ...parts(await text(['config', '--name-only', '--null', '--get-regexp', programSettings])),
    ...(await fetchPrograms(text)),
  ]
  const isBusy = marks.some((name) => existsSync(join(directory, name)))
  const branch = (await text(['symbolic-ref', '--quiet', '--short', 'HEAD'])).trim() || undefined
  // With programs set git would run them to compare files and to look for objects.
  if (programs.length > 0) return { isOwn, isBusy, branch, programs, filtered: [], uncommitted: [], hasCommit: true }
  const hasCommit = await git(['cat-file', '-e', `${commit}^{commit}`]).then(
    () => true,
    () => false,
  )
  const attributes = ['grep', '-l', '-z', '-E', 'filter=']
  return {
    isOwn,
    isBusy,
    branch,
    programs,
    filtered: hasCommit ? parts(await text([...attributes, commit, '--', ':(glob)**/.gitattributes'])) : [],
    uncommitted: parts(await git(statusArguments)),
    hasCommit,
  }
}

/**
 * Where objects are missing because a remote has promised them, any command fetches them: what the repository itself names for
 * a fetch would run. What the user's own configuration names is how the user authenticates.
 */
async function fetchPrograms(text: (args: readonly string[]) => Promise<string>): Promise<string[]> {
  const promised = await text(['config', '--name-only', '--get-regexp', promisorSettings])
  if (promised === '') return []
  const found = parts(await text(['config', '--show-scope', '--name-only', '--null', '--get-regexp', fetchSettings]))
  return found.filter((_, index) => index % 2 === 1 && ['local', 'worktree'].includes(found[index - 1] ?? ''))
}

const promisorSettings = '^(extensions\\.partialclone|remote\\..*\\.(promisor|partialclonefilter))$'
const fetchSettings =
  '^(core\\.(alternaterefscommand|gitproxy)|credential\\.(.*\\.)?helper|remote\\..*\\.(uploadpack|vcs))$'
const programSettings = '^(filter\\..*\\.(clean|smudge|process)|merge\\..*\\.driver)$'
const statusArguments = [
  'status',
  '--porcelain=v1',
  '-z',
  '--untracked-files=all',
  '--ignore-submodules=all',
  '--no-renames',
]
// With `merge.ff = false`, or `only` after other commits, of the user's git there is no squash.
const squash = ['--squash', '--ff']
const parts = (text: string): string[] => text.split('\0').filter((part) => part !== '')

async function bring(
  git: TopGit,
  { task, how, top, branch, identity }: {
    task: Stored<AgentTask>
    how: ApplyHow
    top: string
    branch: string
    identity: { name: string; email: string } | undefined
  },
): Promise<AppliedChange> {
  const { commit = '' } = task.status ?? {}
  const { name, email } = identity ?? { name: 'Corral', email: 'corral@localhost' }
  const env = { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email }
  const way = how === 'merge' ? ['--no-edit', '-m', `Merge branch '${branchNameOf(task)}' into ${branch}`] : squash
  try {
    await git(['merge', '--quiet', '--no-overwrite-ignore', '--no-verify-signatures', ...way, commit], env)
  } catch (error) {
    if (!(error instanceof GitError)) throw error
    const conflicts = parts(await git(['diff', '--name-only', '--diff-filter=U', '-z']).catch(() => ''))
    // Clean before, so that what is there now is of this merge alone.
    await git(how === 'merge' ? ['merge', '--abort'] : ['reset', '--merge']).catch(() => undefined)
    if (conflicts.length === 0)
      throw new TaskError('ApplyNotPossible', `git could not merge: ${error.stderr.trim().split('\n').at(-1) ?? ''}`, {
        hint: `Nothing was changed. Take it in a shell: \`corral task apply ${task.metadata.name}\`.`,
        cause: error,
      })
    throw new TaskError('MergeConflict', `"${branch}" and the task changed the same lines: ${conflicts.join(', ')}`, {
      hint: `Nothing was changed. Merge it in a shell: \`corral task apply ${task.metadata.name} --3way\`.`,
      details: { files: conflicts },
    })
  }
  const head = (await git(['rev-parse', 'HEAD'])).trim()
  return { how, work_tree: top, branch, commit: head, fast_forward: how === 'merge' && head === commit }
}
