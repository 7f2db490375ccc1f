import type { WatchEventType } from '@corral/ports'

/** The parts every Kubernetes object shares, spelled as on the wire. */

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

export interface ManagedFieldsEntry {
  manager?: string
  operation?: string
  apiVersion?: string
  time?: string
  fieldsType?: string
  fieldsV1?: Record<string, unknown>
  subresource?: string
}

/** Metadata as read from a server or sent to one: everything is optional until the server has filled it in. */
export interface ObjectMeta {
  name?: string
  generateName?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  ownerReferences?: OwnerReference[]
  managedFields?: ManagedFieldsEntry[]
  selfLink?: string
}

export interface KubeObject {
  apiVersion?: string
  kind?: string
  metadata?: ObjectMeta
}

/** An object that has been read from a server: it has a name, a uid and a version. */
export type Stored<T extends KubeObject> = T & {
  apiVersion: string
  kind: string
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string; creationTimestamp: string }
}

export interface ListMeta {
  resourceVersion?: string
  continue?: string
  remainingItemCount?: number
}

export interface KubeList<T extends KubeObject = KubeObject> {
  apiVersion: string
  kind: string
  metadata: ListMeta
  items: Stored<T>[]
}

export type ConditionStatus = 'True' | 'False' | 'Unknown'

export interface Condition {
  type: string
  status: ConditionStatus
  reason: string
  message: string
  lastTransitionTime: string
  observedGeneration?: number
}

export interface StatusCause {
  reason?: string
  message?: string
  field?: string
}

/** Kubernetes' answer to a request that has no object to return; also every error body. */
export interface Status {
  apiVersion: 'v1'
  kind: 'Status'
  metadata: ListMeta
  status?: 'Success' | 'Failure'
  message?: string
  reason?: string
  details?: {
    name?: string
    group?: string
    kind?: string
    uid?: string
    causes?: StatusCause[]
    retryAfterSeconds?: number
  }
  code?: number
}

export interface WatchEvent<T extends KubeObject = KubeObject> {
  type: WatchEventType
  object: T
}

/** Where a kind lives in the API. `T` is carried for the type checker only. */
export interface ResourceKind<T extends KubeObject = KubeObject> {
  readonly group: string
  readonly version: string
  /** `group/version`, or just `version` in the core group. */
  readonly apiVersion: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  readonly _type?: T
}

export function defineKind<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
  scope: 'Namespaced' | 'Cluster' = 'Namespaced',
): ResourceKind<T> {
  const slash = apiVersion.indexOf('/')
  return {
    group: slash < 0 ? '' : apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
    apiVersion,
    kind,
    plural,
    namespaced: scope === 'Namespaced',
  }
}
