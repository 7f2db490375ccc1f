import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, constants, copyFile, mkdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { type Git, lastLines } from '../git/git.js'
import { TaskError } from '../task-error.js'
import { pushFailure } from './git-failure.js'
import { type LfsPointer, lfsObjectPath } from './lfs-pointer.js'
import type { RepositoryLocation } from './repository-url.js'
import { parseRepositoryUrl } from './repository-url.js'
import { gitDirectoryOf } from './repository-view.js'

/** The content of a Git LFS file as a file on this machine. */
export interface LfsObject extends LfsPointer {
  path: string
}

export interface LfsRequest {
  git: Git
  /** The mirror of the repository; contents fetched from a server are kept in it. */
  mirror: string
  location: RepositoryLocation
  signal: AbortSignal
}

const timeoutMs = 60 * 60_000

/**
 * The contents that pointers of a commit stand for: from the repository itself where it is on this machine and has them,
 * else from the server, with git-lfs and the user's credentials. Throws `LfsUnavailable` for the first that cannot be had.
 */
export async function bringLfsObjects(
  request: LfsRequest & {
    commit: string
    pointers: readonly (LfsPointer & { path: string })[]
    onProgress?: ((line: string) => void) | undefined
  },
): Promise<LfsObject[]> {
  const { git, mirror, commit, location, signal, onProgress } = request
  const wanted = [...new Map(request.pointers.map((pointer) => [pointer.oid, pointer])).values()]
  if (wanted.length === 0) return []
  const own = await ownStore(git, location, signal)
  const stores = [...(own ? [own] : []), join(mirror, 'lfs', 'objects')]
  const find = async (pointer: LfsPointer): Promise<string | undefined> => {
    for (const store of stores) {
      const path = lfsObjectPath(store, pointer.oid)
      if (await isContent(path, pointer, signal)) return path
    }
    return undefined
  }
  const found = new Map<string, string>()
  const look = async (): Promise<(typeof wanted)[number] | undefined> => {
    let missing: (typeof wanted)[number] | undefined
    for (const pointer of wanted) {
      const path = found.get(pointer.oid) ?? (await find(pointer))
      if (path) found.set(pointer.oid, path)
      else missing ??= pointer
    }
    return missing
  }
  const missing = await look()
  if (missing) {
    const address = await serverAddress(git, location, signal)
    if (!address) throw unavailable(missing.path, 'the repository does not have it, nor a remote to ask')
    if (!(await hasGitLfs(git))) throw gitLfsMissing()
    onProgress?.(`Fetching contents of ${wanted.length} Git LFS files`)
    const env = await settings(git, { address, mirror, commit, signal })
    await git(['lfs', 'fetch', '--include=', '--exclude=', 'origin', commit], {
      cwd: mirror,
      env,
      signal,
      timeoutMs,
      ...(onProgress ? { onStderr: onProgress } : {}),
    }).catch((error: unknown) => {
      if (signal.aborted) throw error
      throw unavailable(missing.path, lastLines(String((error as { stderr?: string }).stderr ?? error), 2), error)
    })
    const still = await look()
    if (still) throw unavailable(still.path, 'the server does not have it')
  }
  return wanted.map(({ oid, sizeBytes }) => ({ oid, sizeBytes, path: found.get(oid)! }))
}

/** Stores contents where the repository keeps them, before a branch names them. Safe to repeat. */
export async function storeLfsObjects(
  request: LfsRequest & { branch: string; baseCommit: string; objects: readonly LfsObject[] },
): Promise<void> {
  const { git, mirror, location, objects, signal } = request
  if (objects.length === 0) return
  const own = await ownStore(git, location, signal)
  if (own) {
    for (const object of objects) await place(object, lfsObjectPath(own, object.oid))
    return
  }
  if (!(await hasGitLfs(git))) throw gitLfsMissing()
  for (const object of objects) await place(object, lfsObjectPath(join(mirror, 'lfs', 'objects'), object.oid))
  const env = await settings(git, { address: location.url, mirror, commit: request.baseCommit, signal })
  try {
    for (let start = 0; start < objects.length; start += 100) {
      const oids = objects.slice(start, start + 100).map(({ oid }) => oid)
      await git(['lfs', 'push', '--object-id', 'origin', ...oids], { cwd: mirror, env, signal, timeoutMs })
    }
  } catch (error) {
    if (signal.aborted) throw error
    throw pushFailure(error, location.url, request.branch)
  }
}

export async function hasGitLfs(git: Git): Promise<boolean> {
  return git(['lfs', 'version'], { timeoutMs: 60_000 }).then(
    () => true,
    () => false,
  )
}

export function gitLfsMissing(): TaskError {
  return new TaskError('LfsUnavailable', 'git-lfs is not installed on the machine of the platform', {
    hint: 'Install git-lfs for the user who runs Corral, or leave `lfs` out: then its files are pointers.',
  })
}

/** Where a repository on this machine keeps contents; undefined for one elsewhere. */
async function ownStore(git: Git, location: RepositoryLocation, signal: AbortSignal): Promise<string | undefined> {
  const directory = await gitDirectoryOf(git, location, signal)
  if (directory === undefined) return undefined
  const storage = await configured(git, ['--file', join(directory, 'config'), '--no-includes'], 'lfs.storage', signal)
  return join(resolve(directory, storage || 'lfs'), 'objects')
}

/** The address of the remote: the repository's own, or for one on this machine that of where it was cloned from. */
async function serverAddress(git: Git, location: RepositoryLocation, signal: AbortSignal): Promise<string | undefined> {
  const directory = await gitDirectoryOf(git, location, signal)
  if (directory === undefined) return location.url
  const where = ['--file', join(directory, 'config'), '--no-includes']
  const origin = await configured(git, where, 'remote.origin.url', signal)
  if (origin === '') return undefined
  const parsed = parseRepositoryUrl(origin)
  return parsed.kind === 'local' ? `file://${parsed.path}` : parsed.url
}

/**
 * What git-lfs is told instead of the configuration of a repository: where the remote is, and the server that the base
 * names in `.lfsconfig`. Nothing else of that file is read, and none that an agent wrote.
 */
async function settings(
  git: Git,
  place: { address: string; mirror: string; commit: string; signal: AbortSignal },
): Promise<Record<string, string>> {
  const blob = ['--blob', `${place.commit}:.lfsconfig`]
  const server = await configured(git, blob, 'lfs.url', place.signal, place.mirror)
  const pairs = [
    ['remote.origin.url', place.address],
    ...(/^(https?|ssh):\/\//.test(server) ? [['lfs.url', server]] : []),
  ]
  const entries = pairs.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key!],
    [`GIT_CONFIG_VALUE_${index}`, value!],
  ])
  return { GIT_CONFIG_COUNT: String(pairs.length), ...(Object.fromEntries(entries) as Record<string, string>) }
}

async function configured(
  git: Git,
  where: readonly string[],
  key: string,
  signal: AbortSignal,
  cwd = '/',
): Promise<string> {
  return git(['config', ...where, '--get', key], { cwd, signal, timeoutMs: 60_000 }).then(
    ({ stdout }) => stdout.trim(),
    () => '', // not set
  )
}

/** A file may be anything: only its hash says that it is the content. */
async function isContent(path: string, { oid, sizeBytes }: LfsPointer, signal: AbortSignal): Promise<boolean> {
  const size = await stat(path).then(
    (info) => (info.isFile() ? info.size : -1),
    () => -1,
  )
  if (size !== sizeBytes) return false
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { signal })) hash.update(chunk as Buffer)
  return hash.digest('hex') === oid
}

async function place({ oid, sizeBytes, path }: LfsObject, target: string): Promise<void> {
  if ((await stat(target).catch(() => undefined))?.size === sizeBytes) return
  await mkdir(dirname(target), { recursive: true })
  const partial = join(dirname(target), `.${oid}.new`)
  await rm(partial, { force: true })
  await copyFile(path, partial, constants.COPYFILE_FICLONE)
  await chmod(partial, 0o644)
  await rename(partial, target)
}

function unavailable(path: string, why: string, cause?: unknown): TaskError {
  return new TaskError('LfsUnavailable', `the content of the Git LFS file "${path}" could not be had: ${why}`, {
    hint: 'Check that `git lfs pull` works in a clone on this machine, or leave `lfs` out: then its files are pointers.',
    cause,
  })
}
