import type { NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, Pod, Stored } from '@corral/resources'

/** The class of claims this node serves, and of those that name none. */
export const localStorageClass = 'local'
export const provisionerName = 'corral.dev/local'
/** Says which claims are directories of this node, so that they are removed with it. */
const provisionedBy = 'pv.kubernetes.io/provisioned-by'

export type ClaimAction =
  | { kind: 'createVolume'; volume: PersistentVolume }
  | { kind: 'bind'; volumeName: string; capacity: Record<string, string | number>; accessModes: string[] }

/** Where claims are served, and whether those that name no class are meant. */
export interface ClaimPlace {
  nodeName: string
  path: string
  isDefault: boolean
}

/** What a claim needs to become Bound: a volume, then the binding. Nothing where it is bound or not ours. */
export function planClaim(claim: Stored<PersistentVolumeClaim>, hasVolume: boolean, place: ClaimPlace): ClaimAction[] {
  if (!isLocalClaim(claim, place.isDefault) || claim.metadata.deletionTimestamp || claim.status?.phase === 'Bound')
    return []
  const volumeName = volumeNameOf(claim)
  const capacity = { storage: claim.spec?.resources?.requests?.storage ?? '1Gi' }
  const accessModes = claim.spec?.accessModes ?? ['ReadWriteOnce']
  const bind: ClaimAction = { kind: 'bind', volumeName, capacity, accessModes }
  if (hasVolume) return [bind]
  const volume: PersistentVolume = {
    metadata: { name: volumeName, annotations: { [provisionedBy]: provisionerName } },
    spec: {
      capacity,
      accessModes,
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: claim.spec?.storageClassName ?? localStorageClass,
      volumeMode: 'Filesystem',
      local: { path: place.path },
      nodeAffinity: { required: { nodeSelectorTerms: [onNode(place.nodeName)] } },
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        name: claim.metadata.name,
        uid: claim.metadata.uid,
        ...(claim.metadata.namespace ? { namespace: claim.metadata.namespace } : {}),
      },
    },
  }
  return [{ kind: 'createVolume', volume }, bind]
}

export function volumeNameOf(claim: Stored<PersistentVolumeClaim>): string {
  return `pvc-${claim.metadata.uid}`
}

/** A claim that names our class, or none where ours is the default, and no volume but the one we would make. */
export function isLocalClaim(claim: PersistentVolumeClaim, isDefault: boolean): boolean {
  const wanted = claim.spec?.volumeName
  if (wanted && wanted !== `pvc-${claim.metadata?.uid}`) return false
  const wantedClass = claim.spec?.storageClassName ?? (isDefault ? localStorageClass : undefined)
  return wantedClass === localStorageClass
}

function onNode(name: string): NodeSelectorTerm {
  return { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [name] }] }
}

/** The claims of a pod's `ephemeral` volumes: they come and go with the pod. */
export function ephemeralClaims(pod: Pod): PersistentVolumeClaim[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    const template = volume.ephemeral?.volumeClaimTemplate
    if (!template) return []
    const owner = {
      apiVersion: 'v1',
      kind: 'Pod',
      name: pod.metadata?.name ?? '',
      uid: pod.metadata?.uid ?? '',
      controller: true,
      blockOwnerDeletion: true,
    }
    return [
      {
        metadata: {
          name: `${pod.metadata?.name}-${volume.name}`,
          ...(pod.metadata?.namespace ? { namespace: pod.metadata.namespace } : {}),
          ...(template.metadata?.labels ? { labels: template.metadata.labels } : {}),
          ...(template.metadata?.annotations ? { annotations: template.metadata.annotations } : {}),
          ownerReferences: [owner],
        },
        spec: template.spec,
      },
    ]
  })
}
