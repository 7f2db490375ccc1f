import type { Git } from '../git/git.js'
import type { KeyedLock } from '../keyed-lock.js'
import { fetchContinuedBase } from './continued-base.js'
import type { MirroredBase, Mirrors } from './mirror.js'
import { branchPatterns, checkPush } from './push-check.js'
import type { AcceptRequest, PrepareRequest } from './repository.js'
import { isOnServer, parseRepositoryUrl, type RepositoryLocation } from './repository-url.js'
import type { ReachableRepository } from './repository-view.js'

/** Where a task starts, in the mirror of its repository. */
export interface TaskBase extends MirroredBase {
  /** Where files are read from that decide what a task may do. */
  trusted: MirroredBase
  isPartial: boolean
}

export interface TaskBasePorts {
  git: Git
  mirrors: Mirrors
  lock: KeyedLock
  /** Opens a repository to read from it. */
  reach<T>(
    location: RepositoryLocation,
    signal: AbortSignal,
    use: (repository: ReachableRepository) => Promise<T>,
  ): Promise<T>
  accept(request: AcceptRequest): Promise<unknown>
}

/** Fetches what a task starts from, and finds what would keep its work from being pushed. */
export function fetchTaskBase(
  { git, mirrors, lock, reach, accept }: TaskBasePorts,
  request: PrepareRequest,
): Promise<TaskBase> {
  const { url, baseBranch, newBranch, baseCommit, ownCommits = [], continues, taskDirectory } = request
  const { signal, onProgress, isBaseTrusted } = request
  return reach(parseRepositoryUrl(url), signal, async (location) => {
    // With the base: on a server each question takes a while.
    const alsoRefs = newBranch === undefined ? [] : branchPatterns(newBranch)
    const asked = { signal, onProgress, alsoRefs }
    const fetched = continues
      ? await fetchContinuedBase({
          ...{ git, mirrors, lock, location, baseBranch, continues, url, taskDirectory, accept },
          ...asked,
        })
      : await mirrors.fetch(location, baseBranch, asked)
    const start = baseCommit ?? fetched.commit
    if (newBranch)
      await checkPush({
        git,
        location,
        mirror: fetched.directory,
        branch: newBranch,
        refs: fetched.refs,
        // The branch of a former task may have been replaced meanwhile: then it has to be looked at.
        isBaseBranch: newBranch === fetched.branch && !continues,
        own: [start, ...ownCommits],
        signal,
      })
    const isOther = baseBranch !== undefined && !isBaseTrusted && !continues && isOnServer(url)
    const trusted = isOther ? await mirrors.fetch(location, undefined, { signal, onProgress }) : fetched
    return { ...fetched, trusted, isPartial: await mirrors.complete(location, start, { signal, onProgress }) }
  })
}
