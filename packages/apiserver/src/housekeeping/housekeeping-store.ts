import type { KubeObject } from '@corral/resources'

/** One object of one resource; `resource` is `plural` or `plural.group`, as in `sandboxes.agents.x-k8s.io`. */
export interface ObjectRef {
  readonly resource: string
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export interface ObjectEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly resource: string
  readonly object: KubeObject
}

export type PropagationPolicy = 'Background' | 'Foreground' | 'Orphan'

/**
 * What the housekeepers need of the server. Reads see committed state; every write is checked against the uid, and an
 * object that is gone or has another uid counts as done. Objects handed out are frozen.
 */
export interface HousekeepingStore {
  resources(): Iterable<{ readonly resource: string; readonly namespaced: boolean }>
  list(resource: string): Iterable<KubeObject>
  /** Hears every committed change in order, until the returned function is called. */
  watch(listener: (event: ObjectEvent) => void): () => void
  delete(ref: ObjectRef, options?: { readonly propagationPolicy?: PropagationPolicy }): Promise<void>
  /** Replaces the newest state by what `change` makes of it, again after a conflict; undefined leaves it alone. */
  update(
    ref: ObjectRef,
    change: (object: KubeObject) => KubeObject | undefined,
    options?: { readonly subresource?: 'finalize' | 'status' },
  ): Promise<void>
  create(resource: string, object: KubeObject): Promise<void>
}

/** Where an object is, from the object itself. */
export function refOf(resource: string, object: KubeObject): ObjectRef {
  const { namespace = '', name = '', uid = '' } = object.metadata ?? {}
  return { resource, namespace, name, uid }
}
