import {
  egressCondition,
  imageCondition,
  type Pod,
  type PodStatus,
  resourcesCondition,
  snapshotCondition,
} from '@corral/resources'

const nodeConditions = new Set([
  'DisruptionTarget',
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
  egressCondition,
  imageCondition,
  resourcesCondition,
  snapshotCondition,
])
const isForeign = (type: string): boolean => !nodeConditions.has(type)

/** The cached object may be older than our last write: our own conditions come from there, the others from it. */
export function withOwnConditions(pod: Pod, lastStatus: PodStatus | undefined): Pod {
  if (!lastStatus) return pod
  const own = lastStatus.conditions ?? []
  const others = (pod.status?.conditions ?? []).filter((theirs) => !own.some((ours) => ours.type === theirs.type))
  const merged = own.map(
    (ours) => pod.status?.conditions?.find((c) => isForeign(c.type) && c.type === ours.type) ?? ours,
  )
  return { ...pod, status: { ...pod.status, conditions: [...merged, ...others] } }
}
