import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Git } from '../git/git.js'
import { TaskError } from '../task-error.js'
import { branchMissing, branchTaken, readFailure } from './git-failure.js'
import type { KeyedLock } from './keyed-lock.js'
import type { RepositoryLocation } from './repository-url.js'

export interface Mirrors {
  /** Fetches the repository into its bare mirror and answers where the base branch stands. */
  fetch(location: RepositoryLocation, baseBranch: string | undefined, signal: AbortSignal): Promise<MirroredBase>
  /** Throws `BranchExists` when the branch is there and a commit on top of `base` could not be pushed to it. */
  checkFree(location: RepositoryLocation, branch: string, base: string, signal: AbortSignal): Promise<void>
  /** Directory of a repository's mirror, whether or not it exists yet. */
  directoryOf(location: RepositoryLocation): string
}

export interface MirroredBase {
  directory: string
  branch: string
  commit: string
}

/** Bare mirrors below `directory`, one per repository, fetched one at a time. */
export function createMirrors(options: {
  directory: string
  git: Git
  lock: KeyedLock
  fetchTimeoutMs?: number
}): Mirrors {
  const { git, lock } = options
  const timeoutMs = options.fetchTimeoutMs ?? 10 * 60_000
  const directoryOf = (location: RepositoryLocation): string =>
    join(options.directory, `${createHash('sha256').update(location.url).digest('hex').slice(0, 20)}.git`)

  return {
    directoryOf,
    fetch(location, baseBranch, signal) {
      const directory = directoryOf(location)
      return lock.run(directory, async () => {
        const branch = baseBranch ?? (await defaultBranch(git, location, signal))
        await ensureBareRepository(git, directory, signal)
        await removeStaleLocks(directory)
        const ref = `refs/heads/${branch}`
        try {
          await git(['fetch', '--quiet', '--no-tags', '--force', location.url, `${ref}:${ref}`], {
            cwd: directory,
            signal,
            timeoutMs,
          })
        } catch (error) {
          if (/couldn't find remote ref/i.test(String((error as Error).message)))
            throw branchMissing(branch, location.url)
          throw readFailure(error, location.url)
        }
        const { stdout } = await git(['rev-parse', '--verify', `${ref}^{commit}`], { cwd: directory, signal })
        return { directory, branch, commit: stdout.trim() }
      })
    },
    async checkFree(location, branch, base, signal) {
      const { stdout } = await git(['ls-remote', location.url, `refs/heads/${branch}`], { signal, timeoutMs: 60_000 })
      const commit = /^[0-9a-f]+/.exec(stdout)?.[0]
      if (!commit) return
      try {
        await git(['merge-base', '--is-ancestor', commit, base], { cwd: directoryOf(location), signal })
      } catch (error) {
        // Not an ancestor, or a commit the mirror of the base branch does not even have.
        throw branchTaken(branch, location.url, error)
      }
    },
  }
}

async function defaultBranch(git: Git, location: RepositoryLocation, signal: AbortSignal): Promise<string> {
  let stdout: string
  try {
    ;({ stdout } = await git(['ls-remote', '--symref', location.url, 'HEAD'], { signal, timeoutMs: 60_000 }))
  } catch (error) {
    throw readFailure(error, location.url)
  }
  const named = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(stdout)?.[1]
  if (named) return named
  throw new TaskError('RepositoryEmpty', `${location.url} has no default branch`, {
    hint: 'An empty repository cannot be worked on: push a first commit, or name a base branch.',
  })
}

async function ensureBareRepository(git: Git, directory: string, signal: AbortSignal): Promise<void> {
  if (existsSync(join(directory, 'HEAD'))) return
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await git(['init', '--quiet', '--bare', directory], { signal })
}

/** Locks of a process that was killed: nobody else works here, the data directory belongs to one platform. */
async function removeStaleLocks(directory: string): Promise<void> {
  for (const name of ['packed-refs.lock', 'shallow.lock', 'FETCH_HEAD.lock', 'config.lock', 'HEAD.lock'])
    await rm(join(directory, name), { force: true })
}
