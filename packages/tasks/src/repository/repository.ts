import { branchNameProblem, environmentFilePath, maxEnvironmentFileBytes } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import type { Confine } from '../git/confine.js'
import type { Git } from '../git/git.js'
import { KeyedLock } from '../keyed-lock.js'
import { TaskError } from '../task-error.js'
import { type BaseBundle, writeBaseBundle } from './base-bundle.js'
import { BasesAhead } from './bases-ahead.js'
import { CommitMemory } from './commit-memory.js'
import type { ContinuedWork } from './continued-base.js'
import { bringLfsObjects, type LfsObject, storeLfsObjects } from './lfs-objects.js'
import type { LfsPointer } from './lfs-pointer.js'
import type { KeyFile } from './list-files.js'
import { listFiles } from './list-files.js'
import { createMirrors, shallowCommits } from './mirror.js'
import { publishResult } from './publish.js'
import { checkPush } from './push-check.js'
import {
  acceptResult,
  prepareQuarantine,
  type Quarantine,
  type QuarantineLimits,
  quarantineLimits,
} from './quarantine.js'
import { readTextFile } from './read-text-file.js'
import { readTextFiles } from './read-text-files.js'
import { withMirrorRepair } from './repair-mirror.js'
import { parseRepositoryUrl, type RepositoryLocation } from './repository-url.js'
import { type ReachableRepository, withReachable } from './repository-view.js'
import { type SignRequest, signCommits } from './sign-commits.js'
import { type PreparedSubmodule, prepareSubmodules, type SubmoduleDepth } from './submodules.js'
import { fetchTaskBase, type TaskBasePorts } from './task-base.js'

export interface DiffStat {
  filesChanged: number
  insertions: number
  deletions: number
}

export interface PreparedRepository extends BaseBundle {
  /** Absent where the HEAD of the repository is a commit and no base branch was asked for. */
  branch?: string
  commit: string
  /** The environment file of the commit the work started from, never of an agent's own commit. */
  environmentFile?: { text: string; commit: string }
  /** Contents of files in earlier commits are not part of the bundle: the repository is too large for that. */
  isPartial: boolean
  /** Other files of that commit; absent where there is none such. */
  baseFiles?: BaseFiles
  /** The branch those files were read from; absent where the HEAD of the repository is a commit. */
  trustedBranch?: string
  /** Every file of the commit that is checked out, by the id of its content. */
  findFiles(isWanted: (path: string) => boolean): Promise<KeyFile[]>
  /** Parents before what lies in them. */
  submodules: PreparedSubmodule[]
  /** Contents of the Git LFS files of the base, where they were asked for. */
  lfs: LfsObject[]
}

/** What is known of a base before anything is packed. */
export type DescribedBase = Pick<PreparedRepository, 'environmentFile' | 'baseFiles'>

export interface BaseFiles {
  commit: string
  /** Those of these paths that are plain files of a usual size, in this order. */
  read(paths: readonly string[]): Promise<{ path: string; text: string }[]>
}

export interface AcceptedResult {
  commit: string
  diffStat: DiffStat
  /** The whole change as a patch that `git apply` takes; absent where it is larger than is kept. */
  patchPath?: string
  /** What the new Git LFS files of the result are, where that was asked for. */
  lfs: LfsPointer[]
}

/** Repositories as the task controller sees them: history goes into a sandbox and comes back as bundles. */
export interface Repository {
  /** Begins to fetch what `prepare` of the same request will ask for. A failure shows there. */
  fetchAhead(request: PrepareRequest): void
  /** Fetches the base branch and writes a bundle of it. Safe to repeat: the bundle is replaced. */
  prepare(request: PrepareRequest): Promise<PreparedRepository>
  /** Checks what came out of a sandbox, without running any of it. Throws `ResultRejected`. */
  accept(request: AcceptRequest): Promise<AcceptedResult>
  /** Gets ready to check a result while the sandbox still makes it. The mirror has the base already. */
  expectResult(request: Pick<AcceptRequest, 'url' | 'taskDirectory' | 'baseCommit' | 'signal'>): Promise<ExpectedResult>
  /** Commits at which the history of a shallow repository ends; none for a complete one. */
  shallowCommits(url: string): Promise<string[]>
  /** Makes the commits of an accepted result anew, signed with the key of the platform's user. */
  sign(request: SignRequest): Promise<{ commit: string; bundlePath: string }>
  /**
   * Whether a branch is not there yet or stands at this commit, so that work on top of it can be pushed. False where it
   * moved on; throws where a push is known to fail.
   */
  isBranchAt(request: { url: string; branch: string; commit: string; signal: AbortSignal }): Promise<boolean>
  /** Puts the accepted commit on its branch. Safe to repeat: same commit, same ref. */
  publish(request: PublishRequest): Promise<void>
}

export interface PrepareRequest {
  url: string
  baseBranch?: string
  /** The branch of the work: what would keep it from being pushed is told now rather than after the agent ran. */
  newBranch?: string
  /** Directory of the task, outside every sandbox. */
  taskDirectory: string
  /** Commits of this task and the ones it repeats: a branch that stands at one of them holds no work of others. */
  ownCommits?: readonly string[]
  /** The base commit an earlier attempt recorded: it wins over a branch that moved meanwhile. */
  baseCommit?: string
  /** Work of an ended task to go on from. */
  continues?: ContinuedWork | undefined
  /** Unset: none. Addresses of submodules come from the repository and are read with the user's credentials. */
  submodules?: SubmoduleDepth | undefined
  /** Brings the contents of Git LFS files, which are read with the user's credentials. */
  lfs?: boolean | undefined
  /**
   * Reads the environment file from the base, whichever branch that is. Else that of a repository on a server comes from its
   * default branch: others may be an agent's work.
   */
  isBaseTrusted?: boolean
  /**
   * Commits whose history the sandbox can be given in another way, the best first. The first of them that can be built on
   * becomes `since` of the bundle, which then has the rest only.
   */
  have?: ((base: DescribedBase) => Promise<readonly string[]>) | undefined
  /** Another path of the environment file, which then has to be there. */
  environmentFile?: string | undefined
  signal: AbortSignal
  /** Takes what git says while it works: `Receiving objects:  45% (450/1000), 12.3 MiB | 2.1 MiB/s`. */
  onProgress?: ((line: string) => void) | undefined
}

export interface AcceptRequest {
  url: string
  taskDirectory: string
  bundlePath: string
  baseCommit: string
  /** The commit the sandbox says it made; the bundle decides. */
  claimedCommit: string
  /** Looks for pointers of Git LFS in what is new. */
  lfs?: boolean | undefined
  signal: AbortSignal
}

/** A check that waits for its result. */
export interface ExpectedResult {
  /** As `accept` of the repository, for the task that was named; once. */
  accept(request: AcceptRequest): Promise<AcceptedResult>
  /** Ends what waits. Safe to repeat, and after `accept`. */
  close(): Promise<void>
}

export interface PublishRequest {
  url: string
  taskDirectory: string
  commit: string
  branch: string
  /** Commits of the tasks this one repeats: a branch that stands at one of them is replaced. */
  replaces?: readonly string[]
  /** Contents of Git LFS files, which are stored before the branch names them. */
  lfs?: { objects: readonly LfsObject[]; baseCommit: string } | undefined
  signal: AbortSignal
}

export interface RepositoryOptions {
  git: Git
  mirrorsDirectory: string
  fetchTimeoutMs?: number
  /** How a git that reads what a sandbox sent is started; without it only the limits of a process hold it. */
  confine?: Confine
  limits?: Partial<QuarantineLimits>
  /** Size of a repository from which on its mirror is partial. */
  partialAboveBytes?: number
  /** Where confined git is looked for. */
  path?: string | undefined
}

export function createRepository(options: RepositoryOptions): Repository {
  const { git, path, confine = ({ argv }) => argv } = options
  const limits = { ...quarantineLimits, ...options.limits }
  const lock = new KeyedLock()
  const memory = new CommitMemory()
  const mirrors = createMirrors({
    directory: options.mirrorsDirectory,
    git,
    lock,
    ...(options.fetchTimeoutMs ? { fetchTimeoutMs: options.fetchTimeoutMs } : {}),
    ...(options.partialAboveBytes === undefined ? {} : { partialAboveBytes: options.partialAboveBytes }),
  })
  const reach = <T>(
    location: RepositoryLocation,
    purpose: 'read' | 'write',
    signal: AbortSignal,
    use: (repository: ReachableRepository) => Promise<T>,
  ): Promise<T> => withReachable({ git, location, purpose, directory: options.mirrorsDirectory, signal }, use)
  const quarantine = (url: string): Quarantine => ({
    mirror: mirrors.directoryOf(parseRepositoryUrl(url)),
    confine,
    limits,
    path,
  })
  const accept = (request: AcceptRequest): Promise<AcceptedResult> =>
    acceptResult({ ...request, ...quarantine(request.url) })
  const basePorts: TaskBasePorts = {
    git,
    mirrors,
    lock,
    reach: (location, signal, use) => reach(location, 'read', signal, use),
    accept,
  }
  const ahead = new BasesAhead((request) => fetchTaskBase(basePorts, request))
  const repository: Repository = {
    fetchAhead(request) {
      checkBranchNames(request)
      ahead.begin(request)
    },
    async prepare(request) {
      const { url, taskDirectory, baseCommit, continues, signal, onProgress, ...more } = request
      checkBranchNames(request)
      const base = (await ahead.take(request)) ?? (await fetchTaskBase(basePorts, request))
      const commit = baseCommit ?? base.commit
      const isElsewhere = base.trusted.branch !== base.branch
      const filesFrom = continues ? continues.result?.baseCommit : isElsewhere ? base.trusted.commit : commit
      const environmentFile = await memory.get(filesFrom ?? '', ['environment', more.environmentFile ?? ''], () =>
        readEnvironmentFile(git, {
          mirror: base.directory,
          commit: filesFrom,
          path: more.environmentFile,
          signal,
        }),
      )
      const baseFiles = filesFrom && {
        commit: filesFrom,
        read: (paths: readonly string[]) =>
          memory.get(filesFrom, ['files', ...paths], () =>
            readTextFiles(git, {
              mirror: base.directory,
              commit: filesFrom,
              paths,
              maxBytes: maxEnvironmentFileBytes,
              signal,
            }),
          ),
      }
      const have = (await more.have?.({ ...environmentFile, ...(baseFiles ? { baseFiles } : {}) })) ?? []
      const bundle = await lock.run(base.directory, async () =>
        writeBaseBundle({
          git,
          mirror: base.directory,
          commit,
          fingerprint: base.fingerprint,
          since: base.isPartial ? undefined : await firstKnown(git, base.directory, have, commit, signal),
          directory: taskDirectory,
          signal,
          onProgress,
        }),
      )
      const submodules = await prepareSubmodules({
        git,
        lock,
        mirrors,
        reach: (location, use) => reach(location, 'read', signal, use),
        depth: more.submodules ?? 'none',
        parent: parseRepositoryUrl(url),
        facts: bundle.facts,
        directory: taskDirectory,
        signal,
        onProgress,
      })
      const lfs = more.lfs
        ? await bringLfsObjects({
            git,
            mirror: base.directory,
            commit,
            location: parseRepositoryUrl(url),
            pointers: bundle.facts.lfs,
            signal,
            onProgress,
          })
        : []
      return {
        ...(base.branch ? { branch: base.branch } : {}),
        commit,
        isPartial: base.isPartial,
        ...bundle,
        ...environmentFile,
        ...(baseFiles ? { baseFiles } : {}),
        ...(base.trusted.branch ? { trustedBranch: base.trusted.branch } : {}),
        findFiles: (isWanted) => listFiles(git, { mirror: base.directory, commit, isWanted, signal }),
        submodules,
        lfs,
      }
    },
    async shallowCommits(url) {
      return shallowCommits(mirrors.directoryOf(parseRepositoryUrl(url)))
    },
    accept,
    async expectResult(expected) {
      const prepared = await prepareQuarantine({ ...expected, ...quarantine(expected.url) })
      await prepared.gits.startAhead()
      return {
        accept: (request) => acceptResult({ ...request, ...quarantine(request.url) }, prepared),
        close: () => prepared.gits.close(),
      }
    },
    sign: (request) => signCommits({ ...request, git }),
    async isBranchAt({ url, branch, commit, signal }) {
      checkBranchName('newBranch', branch)
      const location = parseRepositoryUrl(url)
      const mirror = mirrors.directoryOf(location)
      try {
        await reach(location, 'read', signal, (reachable) =>
          checkPush({ git, location: reachable, mirror, branch, isBaseBranch: false, own: [commit], signal }),
        )
        return true
      } catch (error) {
        if (errorCode(error) !== 'BranchExists') throw error
        return false
      }
    },
    async publish(request) {
      const location = parseRepositoryUrl(request.url)
      await reach(location, 'write', request.signal, async (reachable) => {
        const { lfs, branch, signal } = request
        const mirror = mirrors.directoryOf(location)
        if (lfs) await storeLfsObjects({ git, mirror, location, branch, ...lfs, signal })
        const publish = (): Promise<void> => publishResult({ ...request, git, location: reachable })
        // A fetch makes a branch without looking again whether another one has made it meanwhile.
        await (reachable.directory ? lock.run(`${reachable.directory} ${branch}`, publish) : publish())
      })
    },
  }
  return {
    ...repository,
    async prepare(request) {
      const directory = mirrors.directoryOf(parseRepositoryUrl(request.url))
      return withMirrorRepair({ git, lock, directory, signal: request.signal }, () => repository.prepare(request))
    },
  }
}

/** The first of these commits that is in a mirror with its whole history. */
async function firstKnown(
  git: Git,
  mirror: string,
  commits: readonly string[],
  base: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (commits.length === 0 || (await shallowCommits(mirror)).length > 0) return undefined
  for (const commit of commits) {
    if (commit === base) return commit
    if (commit.length !== base.length) continue
    // What is not known, or no longer, is no failure: then more is sent.
    const isThere = await git(['cat-file', '-e', `${commit}^{tree}`], { cwd: mirror, signal }).then(
      () => true,
      () => false,
    )
    if (isThere) return commit
  }
  return undefined
}

async function readEnvironmentFile(
  git: Git,
  place: { mirror: string; commit: string | undefined; path: string | undefined; signal: AbortSignal },
): Promise<Pick<PreparedRepository, 'environmentFile'>> {
  const { commit, path = environmentFilePath } = place
  if (commit === undefined) return {}
  const file = await readTextFile(git, { ...place, commit, path, maxBytes: maxEnvironmentFileBytes })
  if (!file && place.path !== undefined)
    throw new TaskError('EnvironmentInvalid', `there is no file ${path} at ${commit.slice(0, 12)}`, {
      hint: 'Name the environment file by its path from the root of the repository, or leave it out.',
    })
  if (!file) return {}
  if ('text' in file) return { environmentFile: { text: file.text, commit } }
  if ('other' in file)
    throw new TaskError('EnvironmentInvalid', `${path} is ${file.other}; only a plain file is read`, {
      hint: 'Commit the file itself in its place.',
    })
  throw new TaskError(
    'EnvironmentInvalid',
    `${path} has ${file.sizeBytes} bytes; ${maxEnvironmentFileBytes} are the most`,
  )
}

function checkBranchNames({ newBranch, baseBranch }: Pick<PrepareRequest, 'newBranch' | 'baseBranch'>): void {
  checkBranchName('newBranch', newBranch)
  checkBranchName('baseBranch', baseBranch)
}

/** An AgentTask that came past the task API may name anything; git would take some of it for an option or a refspec. */
function checkBranchName(field: string, name: string | undefined): void {
  const problem = name === undefined ? undefined : branchNameProblem(name)
  if (problem) throw new TaskError('InvalidTask', `${field} ${problem}`)
}
