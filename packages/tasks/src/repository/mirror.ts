import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Git } from '../git/git.js'
import type { KeyedLock } from '../keyed-lock.js'
import { baseRefOf } from '../sandbox/collected-work.js'
import { TaskError } from '../task-error.js'
import { branchMissing, readFailure } from './git-failure.js'
import { refsIn } from './listed-refs.js'
import { readMirrorState, writeMirrorState } from './mirror-state.js'
import { completeCommit, defaultPartialAboveBytes, fetchIntoMirror, type MirrorCompletion } from './partial-mirror.js'
import type { RepositoryLocation } from './repository-url.js'
import type { ReachableRepository } from './repository-view.js'

export interface Mirrors {
  /**
   * Fetches the repository into its bare mirror and answers where the base branch stands. `alsoRefs` are patterns of other refs that
   * are asked for with it.
   */
  fetch(
    location: ReachableRepository,
    baseBranch: string | undefined,
    options: {
      signal: AbortSignal
      onProgress?: ((line: string) => void) | undefined
      alsoRefs?: readonly string[]
    },
  ): Promise<MirroredBase>
  /** Fetches one commit with its history into the mirror, whose directory it answers. */
  fetchCommit(
    location: ReachableRepository,
    commit: string,
    options: { signal: AbortSignal; onProgress?: ((line: string) => void) | undefined },
  ): Promise<string>
  /**
   * Brings the contents of a commit whose history is there already into a partial mirror; a complete one has them. Answers
   * whether the mirror is partial.
   */
  complete(
    location: ReachableRepository,
    commit: string,
    options: { signal: AbortSignal; onProgress?: ((line: string) => void) | undefined },
  ): Promise<boolean>
  /** Directory of a repository's mirror, whether or not it exists yet. */
  directoryOf(location: RepositoryLocation): string
}

export interface MirroredBase {
  directory: string
  /** Absent where the HEAD of the repository is a commit and no base branch was asked for. */
  branch?: string
  commit: string
  /** Changes with the tags of the repository and with the end of a shallow history. */
  fingerprint: string
  /** Ref → object, of what was asked for. */
  refs: ReadonlyMap<string, string>
}

/** How many packs and loose objects a mirror may have before they are put together. */
export interface MirrorHousekeeping {
  packs: number
  looseObjects: number
}

const mirrorHousekeeping: MirrorHousekeeping = { packs: 30, looseObjects: 5_000 }

/** Bare mirrors below `directory`, one per repository, fetched one at a time. */
export function createMirrors(options: {
  directory: string
  git: Git
  lock: KeyedLock
  fetchTimeoutMs?: number
  housekeeping?: MirrorHousekeeping
  /** See `fetchIntoMirror`; 0 makes every new mirror of a server a partial one. */
  partialAboveBytes?: number
}): Mirrors {
  const { git, lock } = options
  const timeoutMs = options.fetchTimeoutMs ?? 10 * 60_000
  const partialAboveBytes = options.partialAboveBytes ?? defaultPartialAboveBytes
  const completion = (
    directory: string,
    { address }: ReachableRepository,
    signal: AbortSignal,
    onProgress: ((line: string) => void) | undefined,
  ): MirrorCompletion => ({ git, directory, address, timeoutMs, signal, onProgress })
  const directoryOf = (location: RepositoryLocation): string =>
    join(options.directory, `${createHash('sha256').update(location.url).digest('hex').slice(0, 20)}.git`)

  return {
    directoryOf,
    fetch(location, baseBranch, { signal, onProgress, alsoRefs = [] }) {
      const directory = directoryOf(location)
      return lock.run(directory, async () => {
        const remote = await findBase(git, location, { baseBranch, alsoRefs, signal })
        await ensureBareRepository(git, directory, remote.commit, signal)
        const { branch } = remote
        const ref = branch ? `refs/heads/${branch}` : detachedRef
        const state = await readMirrorState(directory)
        const isShallow = (await shallowCommits(directory)).length > 0
        // A shallow repository may have got more of its history meanwhile, which no ref tells.
        if (isShallow || state.refs[ref] !== remote.commit || state.tags !== remote.tagsKey) {
          await removeStaleLocks(directory)
          await dropMovedTags(git, directory, remote.tags, signal)
          const refspec = `+${branch ? ref : 'HEAD'}:${ref}`
          // Tags that point into the fetched history come along; a shallow repository is taken as far as it goes.
          const depth = isShallow ? ['--unshallow', '--update-shallow'] : ['--update-shallow']
          const isFirst = Object.keys(state.refs).length === 0
          try {
            const isPartial = await fetchIntoMirror({
              ...{ git, directory, address: location.address, options: depth, refspec, timeoutMs, signal, onProgress },
              isPartial: state.isPartial === true,
              partialAboveBytes: isFirst && isFarAway(location) ? partialAboveBytes : undefined,
            })
            if (isPartial) state.isPartial = true
          } catch (error) {
            if (branch && /couldn't find remote ref/i.test(String((error as Error).message)))
              throw branchMissing(branch, location.url)
            throw readFailure(error, location.url)
          }
          // A repack would have to keep what is promised apart from the rest, which this git cannot by size.
          if (!state.isPartial) await packTogether(git, directory, options.housekeeping ?? mirrorHousekeeping, signal)
          const { stdout } = await git(['rev-parse', '--verify', `${ref}^{commit}`], { cwd: directory, signal })
          state.refs[ref] = stdout.trim()
          state.tags = remote.tagsKey
          await writeMirrorState(directory, state)
        }
        return {
          directory,
          ...(branch ? { branch } : {}),
          commit: state.refs[ref],
          fingerprint: `${remote.tagsKey} ${(await shallowCommits(directory)).join(' ')}`,
          refs: remote.refs,
        }
      })
    },
    fetchCommit(location, commit, { signal, onProgress }) {
      const directory = directoryOf(location)
      const ref = baseRefOf(commit)
      const fetch = (refspecs: readonly string[]): Promise<unknown> =>
        git(['fetch', onProgress ? '--progress' : '--quiet', '--update-shallow', location.address, ...refspecs], {
          cwd: directory,
          signal,
          timeoutMs,
          ...(onProgress ? { onStderr: onProgress } : {}),
        })
      return lock.run(directory, async () => {
        await ensureBareRepository(git, directory, commit, signal)
        const state = await readMirrorState(directory)
        if (state.refs[ref] === commit) return directory
        await removeStaleLocks(directory)
        try {
          await fetch([`+${commit}:${ref}`])
        } catch (error) {
          if (signal.aborted) throw error
          // Not every server gives out a commit by its name: then everything on its branches and tags is taken.
          await fetch(['+refs/heads/*:refs/corral/heads/*', '+refs/tags/*:refs/tags/*']).catch((second: unknown) =>
            Promise.reject(readFailure(second, location.url)),
          )
          await git(['update-ref', ref, `${commit}^{commit}`], { cwd: directory, signal }).catch(() =>
            Promise.reject(readFailure(error, location.url)),
          )
        }
        if (state.isPartial) await completeCommit(completion(directory, location, signal, onProgress), commit)
        await writeMirrorState(directory, { ...state, refs: { ...state.refs, [ref]: commit } })
        return directory
      })
    },
    complete(location, commit, { signal, onProgress }) {
      const directory = directoryOf(location)
      return lock.run(directory, async () => {
        const { isPartial = false } = await readMirrorState(directory)
        if (!isPartial) return false
        await completeCommit(completion(directory, location, signal, onProgress), commit).catch((error: unknown) =>
          Promise.reject(readFailure(error, location.url)),
        )
        return true
      })
    },
  }
}

/** Whether each byte has to come over a network. */
const isFarAway = (location: RepositoryLocation): boolean => location.kind === 'remote' && location.transport !== 'file'

/** The commits below which a mirror of a shallow repository has no history. */
export async function shallowCommits(directory: string): Promise<string[]> {
  const text = await readFile(join(directory, 'shallow'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  return text.split('\n').filter((line) => /^[0-9a-f]{40,64}$/.test(line))
}

/** Where a mirror keeps the commit that the HEAD of a repository names directly. */
const detachedRef = 'refs/corral/detached'

interface RemoteBase {
  branch?: string
  commit: string
  refs: ReadonlyMap<string, string>
  /** Tag → object. */
  tags: ReadonlyMap<string, string>
  tagsKey: string
}

/** The branch to start from and where it stands, without a branch for a detached HEAD; and the tags there are. */
async function findBase(
  git: Git,
  location: ReachableRepository,
  {
    baseBranch,
    alsoRefs,
    signal,
  }: { baseBranch: string | undefined; alsoRefs: readonly string[]; signal: AbortSignal },
): Promise<RemoteBase> {
  const wanted = baseBranch ? `refs/heads/${baseBranch}` : 'HEAD'
  let stdout: string
  try {
    ;({ stdout } = await git(['ls-remote', '--symref', location.address, wanted, 'refs/tags/*', ...alsoRefs], {
      signal,
      timeoutMs: 60_000,
      maxOutputBytes: 256 * 1024 * 1024,
    }))
  } catch (error) {
    throw readFailure(error, location.url)
  }
  const refs = refsIn(stdout)
  const commit = refs.get(wanted)
  const branch = baseBranch ?? /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(stdout)?.[1]
  const tags = new Map([...refs].filter(([ref]) => ref.startsWith('refs/tags/') && !ref.endsWith('^{}')))
  const tagsKey = createHash('sha256')
    .update(JSON.stringify([...tags]))
    .digest('hex')
  if (commit) return { ...(branch ? { branch } : {}), commit, refs, tags, tagsKey }
  if (baseBranch) throw branchMissing(baseBranch, location.url)
  throw new TaskError('RepositoryEmpty', `${location.url} has no default branch`, {
    hint: 'An empty repository cannot be worked on: push a first commit, or name a base branch.',
  })
}

/** A mirror has the hash function of the repository it mirrors, which shows in the length of its commits. */
async function ensureBareRepository(git: Git, directory: string, commit: string, signal: AbortSignal): Promise<void> {
  if (existsSync(join(directory, 'HEAD'))) {
    const isSha256 = /objectformat\s*=\s*sha256/i.test(await readFile(join(directory, 'config'), 'utf8'))
    if (isSha256 === (commit.length === 64)) return
    // Another repository came to the same address.
    await rm(directory, { recursive: true, force: true })
  }
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const format = commit.length === 64 ? ['--object-format=sha256'] : []
  await git(['init', '--quiet', '--bare', ...format, directory], { signal })
}

/**
 * Puts the packs and loose objects of many fetches together: every fetch leaves some, and each git that reads the mirror
 * looks through all of them. The caller holds the mirror's lock, so no fetch and no bundle is under way. Other
 * readers go on: objects are only put elsewhere, the unreachable ones too, and git looks for them again. Not vital: a failure
 * leaves the mirror as it is.
 */
async function packTogether(
  git: Git,
  directory: string,
  limits: MirrorHousekeeping,
  signal: AbortSignal,
): Promise<void> {
  const objects = join(directory, 'objects')
  const packs = (await readdir(join(objects, 'pack'))).filter((name) => name.endsWith('.pack')).length
  if (packs <= limits.packs && !(await hasMoreLooseObjects(objects, limits.looseObjects))) return
  // Only as many packs are rewritten as makes each left twice as large as the one before it.
  await git(['repack', '-d', '--quiet', '--geometric=2'], { cwd: directory, signal, timeoutMs: 30 * 60_000 }).catch(
    (error: unknown) => {
      if (signal.aborted) throw error
    },
  )
}

async function hasMoreLooseObjects(objects: string, limit: number): Promise<boolean> {
  let count = 0
  for (const name of await readdir(objects)) {
    if (!/^[0-9a-f]{2}$/.test(name)) continue
    count += (await readdir(join(objects, name))).length
    if (count > limit) return true
  }
  return false
}

/** Forgets tags that moved or went away: a fetch brings new ones only. */
async function dropMovedTags(
  git: Git,
  directory: string,
  tags: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const args = ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/tags']
  const { stdout } = await git(args, { cwd: directory, signal, maxOutputBytes: 256 * 1024 * 1024 })
  for (const [, oid, ref] of stdout.matchAll(/^(\w+) (.+)$/gm))
    if (tags.get(ref!) !== oid) await git(['update-ref', '-d', ref!], { cwd: directory, signal })
}

/** Locks of a process that was killed: no other process works here, the data directory belongs to one platform. */
async function removeStaleLocks(directory: string): Promise<void> {
  for (const name of ['packed-refs.lock', 'shallow.lock', 'FETCH_HEAD.lock', 'config.lock', 'HEAD.lock'])
    await rm(join(directory, name), { force: true })
}
