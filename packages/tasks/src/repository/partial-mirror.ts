import { open, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Git } from '../git/git.js'

/**
 * Received bytes of a first fetch from which on the mirror is made partial: it has all commits and directories, and contents
 * of files only for the commits that tasks start from.
 */
export const defaultPartialAboveBytes: number = 1024 ** 3

/** Under this name a partial mirror knows where the rest is; git asks for it by a name only. */
const promisor = 'corral'
const partialFilter = '--filter=blob:none'
/** A fetch that is nearly done is let to its end. */
const nearlyDonePercent = 90

export interface MirrorFetch {
  git: Git
  directory: string
  address: string
  /** Options before the address and the refspec after it. */
  options: readonly string[]
  refspec: string
  isPartial: boolean
  /** Size from which on it becomes partial; undefined: never. 0: at once. */
  partialAboveBytes: number | undefined
  timeoutMs: number
  signal: AbortSignal
  onProgress: ((line: string) => void) | undefined
}

/**
 * Fetches into a mirror; answers whether it is partial afterwards. A server that cannot leave contents out sends
 * everything, and the mirror is a complete one.
 */
export async function fetchIntoMirror(fetch: MirrorFetch): Promise<boolean> {
  const { git, directory, options, refspec, isPartial, partialAboveBytes, onProgress } = fetch
  if (!isPartial && partialAboveBytes !== 0) {
    const tooLarge = new AbortController()
    const watch = (line: string): void => {
      if (partialAboveBytes !== undefined && isTooLarge(line, partialAboveBytes)) tooLarge.abort()
      onProgress?.(line)
    }
    const isWatched = onProgress !== undefined || partialAboveBytes !== undefined
    try {
      await git(['fetch', isWatched ? '--progress' : '--quiet', ...options, fetch.address, refspec], {
        cwd: directory,
        signal: AbortSignal.any([fetch.signal, tooLarge.signal]),
        timeoutMs: fetch.timeoutMs,
        ...(isWatched ? { onStderr: watch } : {}),
      })
      return false
    } catch (error) {
      if (!tooLarge.signal.aborted || fetch.signal.aborted) throw error
    }
    await removeHalfPacks(directory)
    onProgress?.('a very large repository: contents of earlier versions of files are left out')
  }
  await setPromisor(fetch)
  let isIgnored = false
  await git(['fetch', '--progress', partialFilter, ...options, promisor, refspec], {
    cwd: directory,
    signal: fetch.signal,
    timeoutMs: fetch.timeoutMs,
    onStderr: (line) => {
      if (/filtering not recognized by server/.test(line)) isIgnored = true
      onProgress?.(line)
    },
  })
  if (isIgnored && !isPartial) await unsetPromisor(fetch)
  return isPartial || !isIgnored
}

/** Whether a line of git's progress says that more has come than a complete mirror may take, with much still to come. */
export function isTooLarge(line: string, limitBytes: number): boolean {
  const match = /^Receiving objects:\s+(\d+)% \(\d+\/\d+\), ([\d.]+) (bytes|KiB|MiB|GiB|TiB)/.exec(line)
  if (!match) return false
  const [, percent, amount, unit = 'bytes'] = match
  const bytes = Number(amount) * 1024 ** ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'].indexOf(unit)
  return bytes > limitBytes && Number(percent) < nearlyDonePercent
}

export type MirrorCompletion = Pick<
  MirrorFetch,
  'git' | 'directory' | 'address' | 'timeoutMs' | 'signal' | 'onProgress'
>

/** Brings the contents of all files of a commit into a partial mirror, in one request. Safe to repeat. */
export async function completeCommit(completion: MirrorCompletion, commit: string): Promise<void> {
  const { git, directory, signal, timeoutMs, onProgress } = completion
  await setPromisor(completion)
  const args = ['rev-list', '--objects', '--missing=print', '--no-object-names', `${commit}^{tree}`]
  const { stdout } = await git(args, { cwd: directory, signal, timeoutMs, maxOutputBytes: 1024 ** 3 })
  const missing = [...stdout.matchAll(/^\?([0-9a-f]{40,64})$/gm)].map(([, oid]) => oid!)
  if (missing.length === 0) return
  const wanted = join(directory, 'corral-wanted')
  await writeFile(wanted, `${missing.join('\n')}\n`, { mode: 0o600 })
  const stdin = await open(wanted, 'r')
  try {
    const options = ['--no-tags', '--no-write-fetch-head', '--recurse-submodules=no', partialFilter, '--stdin']
    await git(['fetch', '--progress', ...options, promisor], {
      cwd: directory,
      stdin: stdin.fd,
      signal,
      timeoutMs,
      // Without it git tells the server of every commit it has before it asks.
      env: {
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'fetch.negotiationAlgorithm',
        GIT_CONFIG_VALUE_0: 'noop',
      },
      onStderr: (line) => onProgress?.(line),
    })
  } finally {
    await stdin.close()
    await rm(wanted, { force: true })
  }
}

async function setPromisor({
  git,
  directory: cwd,
  address,
  signal,
}: Pick<MirrorFetch, 'git' | 'directory' | 'address' | 'signal'>): Promise<void> {
  const settings = [
    ['core.repositoryFormatVersion', '1'],
    ['extensions.partialClone', promisor],
    [`remote.${promisor}.url`, address],
    [`remote.${promisor}.promisor`, 'true'],
    [`remote.${promisor}.partialCloneFilter`, 'blob:none'],
  ] as const
  for (const [key, value] of settings) await git(['config', key, value], { cwd, signal })
}

async function unsetPromisor({ git, directory: cwd, signal }: MirrorFetch): Promise<void> {
  await git(['config', '--remove-section', `remote.${promisor}`], { cwd, signal })
  await git(['config', '--unset', 'extensions.partialClone'], { cwd, signal })
}

/** What an aborted fetch had received. The caller holds the mirror's lock. */
async function removeHalfPacks(directory: string): Promise<void> {
  const packs = join(directory, 'objects', 'pack')
  for (const name of await readdir(packs)) if (name.startsWith('tmp_')) await rm(join(packs, name), { force: true })
}
