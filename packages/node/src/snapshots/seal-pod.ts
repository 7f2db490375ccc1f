import { chmodSync, lstatSync } from 'node:fs'
import { join, posix } from 'node:path'
import { type Clock, type SealRequest, SnapshotError, type SnapshotInfo } from '@corral/ports'
import { isSnapshotName, type Pod } from '@corral/resources'
import type { PodPaths } from '../launch/launch-plan.js'
import type { PodRecord } from '../records/pod-directories.js'
import { inspectTrees } from './inspect-trees.js'
import { isAtOrBelow, type PodPlace, podPlace } from './pod-place.js'
import type { SnapshotDirectory, SnapshotRecord } from './snapshot-directory.js'

/** A pod that can be ended for good while its files stay. */
export interface SealedPod {
  readonly pod: Pod
  readonly record: PodRecord
  readonly paths: PodPaths
  /** Ends every process of it; nothing starts in it again. Safe to repeat. */
  endFor(reason: string, message: string): Promise<void>
}

export interface SealPorts {
  directory: SnapshotDirectory
  find(podUid: string): SealedPod | undefined
  /** The compiled supervisor, where there is one. */
  program: string | undefined
  clock: Clock
}

/** See `SnapshotStore.seal`. */
export async function sealPod(ports: SealPorts, request: SealRequest): Promise<SnapshotInfo> {
  const { directory, program } = ports
  const { podUid, name, signal, secrets = [] } = request
  const paths = checkRequest(request)
  const existing = directory.find(name)
  if (existing?.podUid === podUid) return infoOf(existing)
  if (existing) throw new SnapshotError('AlreadyExists', `a snapshot "${name}" exists already`)
  if (program === undefined)
    throw new SnapshotError(
      'Unsupported',
      'sealing needs the compiled supervisor: install a C compiler and run "npm run setup" again',
    )
  const sealed = ports.find(podUid)
  if (!sealed) throw new SnapshotError('NotFound', `there is no pod ${podUid} on this node`)
  const places = paths.map((path) => podPlace(sealed.pod, sealed.paths, path))
  await sealed.endFor('Sealed', `its directories become snapshot "${name}"`)
  const { failure } = sealed.record
  if (failure && failure.reason !== 'Sealed')
    throw new SnapshotError('Failed', `the pod has failed: ${failure.reason}: ${failure.message}`)
  signal?.throwIfAborted()
  const { hostUid: ownerUid, namespace } = sealed.record
  const trees = places.map((place, index) => ({ source: requireDirectory(place, paths[index]!), path: paths[index]! }))
  const inspection = await inspectTrees({ program, ownerUid, trees, secrets, signal })
  const record = directory.take(
    {
      name,
      namespace,
      podUid,
      paths,
      ...inspection,
      createdAt: ports.clock.now().toISOString(),
      labels: { ...request.labels },
      ownerUid,
    },
    trees.map(({ source }) => source),
  )
  return infoOf(record)
}

export function infoOf({ version: _version, ownerUid: _ownerUid, ...info }: SnapshotRecord): SnapshotInfo {
  return info
}

function checkRequest({ name, paths }: SealRequest): string[] {
  if (!isSnapshotName(name))
    throw new SnapshotError(
      'Invalid',
      `"${name}" is no name for a snapshot: lower case letters, digits and "-", up to 63`,
    )
  if (paths.length === 0 || paths.length > 16) throw new SnapshotError('Invalid', 'a snapshot has 1 to 16 paths')
  const clean = paths.map((path) => posix.resolve('/', path))
  for (const [index, path] of clean.entries()) {
    if (!paths[index]!.startsWith('/') || path === '/')
      throw new SnapshotError('Invalid', `"${paths[index]}" is not an absolute path below /`)
    const other = clean.find((parent, at) => at !== index && isAtOrBelow(path, parent))
    if (other) throw new SnapshotError('Invalid', `${path} lies inside ${other}: name the outer one alone`)
  }
  return clean
}

/** The pod is over, so nothing moves any more; but what it left may be links. */
function requireDirectory({ root, relative }: PodPlace, path: string): string {
  let current = root
  for (const part of ['', ...relative.split('/').filter(Boolean)]) {
    current = join(current, part)
    const found = lstatSync(current, { throwIfNoEntry: false })
    if (!found) throw new SnapshotError('NotFound', `the pod has no directory ${path}`)
    if (!found.isDirectory()) throw new SnapshotError('Invalid', `${path} is not a directory, or a link leads to it`)
    // Without root a directory that its owner may not write to cannot be moved to another parent.
    if (current.length >= join(root, relative).length && process.getuid?.() !== 0)
      chmodSync(current, (found.mode & 0o7777) | 0o700)
  }
  return current
}
