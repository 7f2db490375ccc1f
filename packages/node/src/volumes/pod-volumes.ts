import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import { isAlreadyExists, PersistentVolumeClaims, type Pod, type Volume } from '@corral/resources'
import { quantityValue } from '../launch/amounts.js'
import type { ReadyVolume } from '../launch/container-mounts.js'
import { LaunchError } from '../launch/launch-error.js'
import { ownedDirectory } from '../records/pod-directories.js'
import type { ClaimDirectories } from './claim-directories.js'
import { ephemeralClaims } from './claim-plan.js'
import { type VolumeFilesInput, volumeFiles } from './volume-files.js'
import { writeVolume } from './write-volume.js'

export interface PodVolumesInput extends VolumeFilesInput {
  client: KubeClient
  claims: ClaimDirectories
  /** `<data>/pods/<uid>/volumes`. */
  directory: string
  hostUid: number
  isUidInUse(hostUid: number): boolean
  signal: AbortSignal
}

/** Makes every volume of the pod ready. Safe to repeat: what is there stays, what comes from the API is refreshed. */
export async function readyVolumes(input: PodVolumesInput): Promise<Map<string, ReadyVolume>> {
  const ready = new Map<string, ReadyVolume>()
  await ensureEphemeralClaims(input)
  for (const volume of input.pod.spec?.volumes ?? []) ready.set(volume.name, await readyVolume(volume, input))
  return ready
}

async function ensureEphemeralClaims({ client, pod, signal }: PodVolumesInput): Promise<void> {
  for (const claim of ephemeralClaims(pod)) {
    try {
      await client.create(PersistentVolumeClaims, claim, { signal })
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
    }
  }
}

async function readyVolume(volume: Volume, input: PodVolumesInput): Promise<ReadyVolume> {
  const path = join(input.directory, volume.name)
  if (volume.persistentVolumeClaim) {
    return {
      type: 'directory',
      path: await claimPath(volume.persistentVolumeClaim.claimName, input),
      readOnly: volume.persistentVolumeClaim.readOnly ?? false,
    }
  }
  if (volume.ephemeral) {
    const claimName = `${input.pod.metadata?.name}-${volume.name}`
    return { type: 'directory', path: await claimPath(claimName, input), readOnly: false }
  }
  const files = volumeFiles(volume, input)
  if (files) {
    await writeVolume(path, files, input.hostUid)
    return { type: 'directory', path, readOnly: true }
  }
  if (volume.emptyDir?.medium === 'Memory' && mountCount(input.pod, volume.name) <= 1) {
    const limit = volume.emptyDir.sizeLimit
    return { type: 'memory', ...(limit === undefined ? {} : { sizeBytes: quantityValue(limit) }) }
  }
  ownedDirectory(path, input.hostUid, volume.emptyDir?.mode ?? 0o777)
  return { type: 'directory', path, readOnly: false }
}

async function claimPath(
  claimName: string,
  { client, claims, pod, hostUid, isUidInUse, signal }: PodVolumesInput,
): Promise<string> {
  const namespace = pod.metadata?.namespace ?? ''
  const claim = await client.find(PersistentVolumeClaims, { namespace, name: claimName }, { signal })
  if (!claim) throw new LaunchError('FailedMount', `persistentvolumeclaim "${claimName}" not found`)
  if (claim.status?.phase !== 'Bound') {
    throw new LaunchError('FailedMount', `persistentvolumeclaim "${claimName}" is not bound yet`)
  }
  const owner = claims.ownerOf(claim.metadata.uid)
  // A chown while another process may move the files would follow a symlink put in their place.
  if (owner !== undefined && owner !== hostUid && isUidInUse(owner)) {
    throw new LaunchError(
      'FailedMount',
      `persistentvolumeclaim "${claimName}" is in use by a pod that runs as another user`,
    )
  }
  return claims.claim(claim.metadata.uid, hostUid)
}

/** A memory file system belongs to one container's mounts; one that several share lies on disk. */
function mountCount(pod: Pod, volume: string): number {
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]
  return containers.filter((container) => container.volumeMounts?.some((mount) => mount.name === volume)).length
}
