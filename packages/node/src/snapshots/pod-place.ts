import { join, posix } from 'node:path'
import { SnapshotError } from '@corral/ports'
import type { Pod, Volume } from '@corral/resources'
import { homeDirectory, type PodPaths } from '../launch/launch-plan.js'

/** A directory of a pod on this machine: `root` is made by the platform, what lies below it by the pod. */
export interface PodPlace {
  root: string
  relative: string
}

/**
 * Where a path of the pod's containers lies, for paths in its own directories: HOME, /tmp and emptyDir volumes on the disk.
 * Throws a `SnapshotError` for others. Pure.
 */
export function podPlace(pod: Pod, paths: PodPaths, path: string): PodPlace {
  const candidates = [
    { target: homeDirectory, root: paths.home },
    { target: '/tmp', root: paths.tmp },
    ...(pod.spec?.containers ?? []).flatMap(({ volumeMounts = [] }) =>
      volumeMounts.map((mount) => ({
        target: posix.resolve('/', mount.mountPath),
        root: join(paths.directory, 'volumes', mount.name),
        // What lies inside a volume was put there by the pod: it may be a link by now.
        inside: mount.subPath ?? '',
        volume: pod.spec?.volumes?.find(({ name }) => name === mount.name),
        isUnknown: mount.subPathExpr !== undefined,
      })),
    ),
  ]
    .filter(({ target }) => isAtOrBelow(path, target))
    .sort((a, b) => b.target.length - a.target.length)
  const [found] = candidates
  if (!found) throw new SnapshotError('NotFound', `${path} is not in a directory of the pod's own`)
  if ('volume' in found && (found.isUnknown || !isOnOwnDisk(found.volume)))
    throw new SnapshotError('NotMovable', `${path} is on a volume that is not an emptyDir on the disk`)
  const below = posix.relative(found.target, path)
  return { root: found.root, relative: 'inside' in found ? insideVolume(found.inside, below) : below }
}

function insideVolume(subPath: string, below: string): string {
  const relative = posix.join(subPath, below)
  if (relative.split('/').includes('..'))
    throw new SnapshotError('Invalid', `subPath "${subPath}" leads out of its volume`)
  return relative === '.' ? '' : relative
}

export function isAtOrBelow(path: string, parent: string): boolean {
  return path === parent || path.startsWith(parent === '/' ? '/' : `${parent}/`)
}

const isOnOwnDisk = (volume: Volume | undefined): boolean =>
  volume?.emptyDir !== undefined && volume.emptyDir.medium !== 'Memory'
