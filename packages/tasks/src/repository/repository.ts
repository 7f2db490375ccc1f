import type { Git } from '../git/git.js'
import { acceptResult } from './accept.js'
import { KeyedLock } from './keyed-lock.js'
import { createMirrors, type MirroredBase } from './mirror.js'
import { publishResult } from './publish.js'
import { parseRepositoryUrl } from './repository-url.js'

export interface DiffStat {
  filesChanged: number
  insertions: number
  deletions: number
}

export interface PreparedRepository extends MirroredBase {
  bundlePath: string
}

export interface AcceptedResult {
  commit: string
  diffStat: DiffStat
  /** The change as a patch, cut off at a size limit. */
  patchPath: string
}

/** Repositories as the task controller sees them: history goes into a sandbox and comes back as bundles. */
export interface Repository {
  /** Fetches the base branch and writes a bundle of it. Safe to repeat: the bundle is replaced. */
  prepare(request: PrepareRequest): Promise<PreparedRepository>
  /** Checks what came out of a sandbox, without running any of it. Throws `ResultRejected`. */
  accept(request: AcceptRequest): Promise<AcceptedResult>
  /** Puts the accepted commit on its branch. Safe to repeat: same commit, same ref. */
  publish(request: PublishRequest): Promise<void>
}

export interface PrepareRequest {
  url: string
  baseBranch?: string
  /** A branch the user named for the work: one with work of its own is refused now rather than after the agent ran. */
  newBranch?: string
  /** Directory of the task, outside every sandbox. */
  taskDirectory: string
  /** The base commit an earlier attempt recorded: it wins over a branch that moved meanwhile. */
  baseCommit?: string
  signal: AbortSignal
}

export interface AcceptRequest {
  url: string
  taskDirectory: string
  bundlePath: string
  baseCommit: string
  /** The commit the sandbox says it made; the bundle decides. */
  claimedCommit: string
  signal: AbortSignal
}

export interface PublishRequest {
  url: string
  taskDirectory: string
  commit: string
  branch: string
  signal: AbortSignal
}

export function createRepository(options: { git: Git; mirrorsDirectory: string; fetchTimeoutMs?: number }): Repository {
  const { git } = options
  const lock = new KeyedLock()
  const mirrors = createMirrors({
    directory: options.mirrorsDirectory,
    git,
    lock,
    ...(options.fetchTimeoutMs ? { fetchTimeoutMs: options.fetchTimeoutMs } : {}),
  })
  return {
    async prepare({ url, baseBranch, newBranch, taskDirectory, baseCommit, signal }) {
      const location = parseRepositoryUrl(url)
      const base = await mirrors.fetch(location, baseBranch, signal)
      const commit = baseCommit ?? base.commit
      if (newBranch && newBranch !== base.branch) await mirrors.checkFree(location, newBranch, commit, signal)
      const bundlePath = `${taskDirectory}/in.bundle`
      await lock.run(base.directory, async () => {
        const ref = `refs/corral/base/${commit}`
        await git(['update-ref', ref, commit], { cwd: base.directory, signal })
        await git(['bundle', 'create', '--quiet', bundlePath, ref], { cwd: base.directory, signal, timeoutMs: 600_000 })
      })
      return { ...base, commit, bundlePath }
    },
    async accept(request) {
      const mirror = mirrors.directoryOf(parseRepositoryUrl(request.url))
      return acceptResult({ ...request, git, mirror })
    },
    async publish(request) {
      await publishResult({ ...request, git, location: parseRepositoryUrl(request.url) })
    },
  }
}
