import { posix } from 'node:path'
import type { Container, VolumeMount } from '@corral/resources'
import type { BindMount } from '../isolation/isolation.js'
import { LaunchError } from './launch-error.js'

/** A pod volume made ready on this machine. */
export type ReadyVolume =
  | { type: 'directory'; path: string; readOnly: boolean }
  | { type: 'memory'; sizeBytes?: number }

export interface ContainerMounts {
  mounts: BindMount[]
  tmpfs: { target: string; sizeBytes?: number }[]
  /** Directories below a volume that must exist before the launch. */
  subPaths: { root: string; relative: string; source: string; readOnly: boolean }[]
}

/** Where each `volumeMount` of the container comes from. `subPathExpr` is expanded with the container's environment. */
export function containerMounts(
  container: Container,
  volumes: ReadonlyMap<string, ReadyVolume>,
  expand: (text: string) => string,
): ContainerMounts {
  const result: ContainerMounts = { mounts: [], tmpfs: [], subPaths: [] }
  for (const mount of container.volumeMounts ?? []) {
    const volume = volumes.get(mount.name)
    if (!volume) throw new LaunchError('CreateContainerConfigError', `volume "${mount.name}" is not part of the pod`)
    addMount(result, mount, volume, expand)
  }
  // A parent must be mounted before what lies below it.
  result.mounts.sort((left, right) => depth(left.target) - depth(right.target))
  return result
}

function addMount(
  result: ContainerMounts,
  mount: VolumeMount,
  volume: ReadyVolume,
  expand: (text: string) => string,
): void {
  for (const field of ['mountPath', 'subPath', 'subPathExpr'] as const)
    if (mount[field]?.includes('\0'))
      throw new LaunchError('CreateContainerConfigError', `${field} of volume "${mount.name}" must not contain NUL`)
  const target = posix.resolve('/', mount.mountPath)
  if (volume.type === 'memory') {
    result.tmpfs.push({ target, ...(volume.sizeBytes === undefined ? {} : { sizeBytes: volume.sizeBytes }) })
    return
  }
  const relative = mount.subPathExpr ? expand(mount.subPathExpr) : (mount.subPath ?? '')
  if (!isInside(relative)) {
    throw new LaunchError(
      'CreateContainerConfigError',
      `subPath "${relative}" of volume "${mount.name}" leaves the volume`,
    )
  }
  const source = posix.join(volume.path, relative)
  if (relative) result.subPaths.push({ root: volume.path, relative, source, readOnly: volume.readOnly })
  result.mounts.push({ source, target, readOnly: volume.readOnly || (mount.readOnly ?? false) })
}

const isInside = (relative: string): boolean => !posix.isAbsolute(relative) && !relative.split('/').includes('..')
const depth = (path: string): number => path.split('/').filter(Boolean).length
