import { errorCode } from '@corral/resources'
import type { Git } from '../git/git.js'
import type { KeyedLock } from '../keyed-lock.js'
import { baseRefOf } from '../sandbox/collected-work.js'
import { TaskError } from '../task-error.js'
import type { MirroredBase, Mirrors } from './mirror.js'
import { quarantineOf, resultRef } from './quarantine.js'
import type { AcceptRequest } from './repository.js'
import type { ReachableRepository } from './repository-view.js'

/** Work of an ended task that another one goes on from. */
export interface ContinuedWork {
  commit: string
  /** The branch it was pushed to. */
  branch?: string | undefined
  /** Whether commits that were added to that branch since are part of the base. */
  takesAdditions: boolean
  /** The former task's result, for a commit that is on no branch of the repository any more. */
  result?: { bundlePath: string; baseCommit: string } | undefined
}

export interface ContinuedBaseRequest {
  git: Git
  mirrors: Mirrors
  lock: KeyedLock
  location: ReachableRepository
  /** Where the former task started from: fetched where the branch of its work is gone. */
  baseBranch: string | undefined
  continues: ContinuedWork
  url: string
  taskDirectory: string
  /** Verifies a result once more, in the quarantine of this task. */
  accept(request: AcceptRequest): Promise<unknown>
  signal: AbortSignal
  onProgress?: ((line: string) => void) | undefined
  /** Patterns of other refs that are asked for with the base. */
  alsoRefs?: readonly string[]
}

/**
 * The base of a task that goes on from another one: the tip of the branch with the former's work, where it only grew and
 * this task goes on with it, else the former's commit itself, brought into the mirror from the former's record where the
 * repository no longer has it.
 */
export async function fetchContinuedBase(request: ContinuedBaseRequest): Promise<MirroredBase> {
  const { git, mirrors, location, baseBranch, continues, signal, onProgress, alsoRefs = [] } = request
  const asked = { signal, onProgress, alsoRefs }
  const tip = continues.branch
    ? await mirrors.fetch(location, continues.branch, asked).catch(undefinedIfDeleted)
    : undefined
  const fetched = tip ?? (await mirrors.fetch(location, baseBranch, asked))
  const { directory } = fetched
  const isKnown = (args: string[]): Promise<boolean> =>
    git(args, { cwd: directory, signal }).then(
      () => true,
      (error: unknown) => {
        if (signal.aborted) throw error
        return false
      },
    )
  if (!(await isKnown(['cat-file', '-e', `${continues.commit}^{commit}`]))) await bringIn(request, directory)
  const hasGrown = tip !== undefined && (await isKnown(['merge-base', '--is-ancestor', continues.commit, tip.commit]))
  if (hasGrown && continues.takesAdditions) return tip
  return { ...fetched, ...(continues.branch ? { branch: continues.branch } : {}), commit: continues.commit }
}

async function bringIn(request: ContinuedBaseRequest, mirror: string): Promise<void> {
  const { git, lock, continues, url, taskDirectory, signal } = request
  const { commit, result } = continues
  if (!result)
    throw new TaskError('InvalidTask', `the commit ${commit.slice(0, 12)} of the former task is no longer kept`, {
      hint: 'Create a new task on the branch it was to go on with.',
    })
  await request.accept({ ...result, url, taskDirectory, claimedCommit: commit, signal })
  await lock.run(mirror, () =>
    git(['fetch', '--quiet', '--no-tags', quarantineOf(taskDirectory), `+${resultRef}:${baseRefOf(commit)}`], {
      cwd: mirror,
      signal,
    }),
  )
}

function undefinedIfDeleted(error: unknown): undefined {
  if (errorCode(error) !== 'BranchNotFound') throw error
}
