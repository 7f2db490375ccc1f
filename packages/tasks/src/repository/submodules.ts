import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Git } from '../git/git.js'
import type { KeyedLock } from '../keyed-lock.js'
import { TaskError } from '../task-error.js'
import { type BaseBundle, writeBaseBundle } from './base-bundle.js'
import type { Mirrors } from './mirror.js'
import { parseRepositoryUrl, type RepositoryLocation } from './repository-url.js'
import { gitDirectoryOf, type ReachableRepository } from './repository-view.js'
import type { SourceFacts, Submodule } from './source-facts.js'
import { submoduleUrl } from './submodule-url.js'

/** Which submodules come along: none, those of the repository, or also those of its submodules. */
export type SubmoduleDepth = 'none' | 'direct' | 'recursive'

export interface PreparedSubmodule extends Submodule, BaseBundle {
  /** Path of the work tree it belongs to, from the top of the repository; empty for the repository itself. */
  parentPath: string
}

export interface SubmodulesRequest {
  git: Git
  lock: KeyedLock
  mirrors: Mirrors
  /** Opens a repository for reading. */
  reach: <T>(location: RepositoryLocation, use: (repository: ReachableRepository) => Promise<T>) => Promise<T>
  depth: SubmoduleDepth
  parent: RepositoryLocation
  facts: SourceFacts
  directory: string
  signal: AbortSignal
  onProgress?: ((line: string) => void) | undefined
}

const maxSubmodules = 200
const maxNesting = 10

/**
 * Bundles of the submodules a commit names, fetched with the user's credentials. A repository on this machine that has
 * them checked out gives its own copy. Throws `SubmoduleUnavailable` for the first that cannot be had.
 */
export async function prepareSubmodules(request: SubmodulesRequest): Promise<PreparedSubmodule[]> {
  if (request.depth === 'none') return []
  const prepared: PreparedSubmodule[] = []
  const visit = async (parent: RepositoryLocation, facts: SourceFacts, parentPath: string, level: number) => {
    for (const submodule of facts.submodules) {
      const path = parentPath === '' ? submodule.path : `${parentPath}/${submodule.path}`
      if (prepared.length === maxSubmodules) throw unavailable(path, `there are more than ${maxSubmodules}`)
      if (level === maxNesting) throw unavailable(path, `submodules lie more than ${maxNesting} deep in each other`)
      const directory = join(request.directory, 'submodules', String(prepared.length))
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const { location, bundle } = await bring(request, parent, submodule, path, directory)
      prepared.push({ ...submodule, ...bundle, parentPath })
      if (request.depth === 'recursive') await visit(location, bundle.facts, path, level + 1)
    }
  }
  await visit(request.parent, request.facts, '', 0)
  return prepared
}

async function bring(
  request: SubmodulesRequest,
  parent: RepositoryLocation,
  submodule: Submodule,
  path: string,
  directory: string,
): Promise<{ location: RepositoryLocation; bundle: BaseBundle }> {
  const { git, signal, onProgress } = request
  try {
    const location = await locate(request, parent, submodule)
    const mirror = await request.reach(location, (repository) =>
      request.mirrors.fetchCommit(repository, submodule.commit, { signal, onProgress }),
    )
    const bundle = await request.lock.run(mirror, () =>
      writeBaseBundle({ git, mirror, commit: submodule.commit, fingerprint: '', directory, signal, onProgress }),
    )
    return { location, bundle }
  } catch (error) {
    if (signal.aborted) throw error
    throw unavailable(path, (error as Error).message, error)
  }
}

/** Where to read a submodule: the parent's own copy of it, else its address. */
async function locate(
  request: SubmodulesRequest,
  parent: RepositoryLocation,
  { name, url }: Submodule,
): Promise<RepositoryLocation> {
  const { git, signal } = request
  const parentDirectory = await gitDirectoryOf(git, parent, signal)
  if (parentDirectory) {
    const own = join(parentDirectory, 'modules', name)
    if (existsSync(join(own, 'HEAD'))) return { kind: 'local', url: own, path: own }
  }
  const origin =
    parentDirectory && (await setting(git, ['--file', join(parentDirectory, 'config')], 'remote.origin.url', signal))
  const address = submoduleUrl(origin || parent.url, url)
  const location = parseRepositoryUrl(address)
  const isOnThisMachine = location.kind === 'local' || location.transport === 'file'
  // A file of the repository names this path: git itself follows such a path only where its user said so.
  if (isOnThisMachine && !(parentDirectory && (await setting(git, [], 'protocol.file.allow', signal)) === 'always'))
    throw new Error(
      `${address} is a path of this machine, which git does not follow for a submodule unless ` +
        '`git config --global protocol.file.allow always` says so; `git submodule update --init` in the repository does as well',
    )
  return location
}

async function setting(git: Git, where: readonly string[], key: string, signal: AbortSignal): Promise<string> {
  return git(['config', ...where, '--get', key], { cwd: '/', signal }).then(
    ({ stdout }) => stdout.trim(),
    () => '', // not set
  )
}

function unavailable(path: string, why: string, cause?: unknown): TaskError {
  return new TaskError('SubmoduleUnavailable', `the submodule "${path}" could not be had: ${why}`, {
    hint: 'Check that git on this machine can fetch it, or leave `submodules` out: then its directory stays empty.',
    cause,
  })
}
