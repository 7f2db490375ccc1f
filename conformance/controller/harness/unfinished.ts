import { type KubeObject, type SandboxWarmPool, SandboxWarmPools, type Stored } from '@corral/resources'
import { observed } from './activity.js'
import type { Contents } from './normalize.js'

const observedKinds = new Set(Object.values(observed).map(({ kind }) => kind))

/** Whether something belongs to an object that is gone: the garbage collector has not come yet. */
export function hasOrphans(contents: Contents): boolean {
  const objects = Object.values(contents).flat()
  const uids = new Set(objects.map(({ metadata }) => metadata.uid))
  return objects.some(({ metadata }) =>
    metadata.ownerReferences?.some(({ kind, uid }) => observedKinds.has(kind) && !uids.has(uid)),
  )
}

/** Whether a pool has yet to be looked at, filled or counted, which our manager does while no claim waits. Some stay so. */
export function hasOpenPools({ sandboxes = [], sandboxwarmpools = [] }: Contents): boolean {
  const isMember = ({ metadata }: Stored<KubeObject>, uid: string): boolean =>
    !metadata.deletionTimestamp &&
    metadata.ownerReferences?.some((owner) => owner.kind === SandboxWarmPools.kind && owner.uid === uid) === true
  return (sandboxwarmpools as Stored<SandboxWarmPool>[]).some(({ metadata, spec, status }) => {
    const members = sandboxes.filter((sandbox) => isMember(sandbox, metadata.uid)).length
    const isSeen = status?.observedGeneration === metadata.generation && (status?.replicas ?? 0) === members
    return !isSeen || members !== (spec.replicas ?? 1)
  })
}
