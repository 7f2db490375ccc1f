import type { KubeObject, ResourceKind } from '@corral/resources'
import { joinKey, keyOf } from './object-key.js'
import type { ObjectKey } from './reconcile.js'
import type { WorkQueue } from './work-queue.js'

/** One observed change. `isInitial` marks objects that existed when the watch began. */
export type ObjectEvent<T extends KubeObject> =
  | { type: 'add'; object: T; isInitial: boolean }
  | { type: 'update'; object: T; old: T }
  | { type: 'delete'; object: T }

/** Which keys one object concerns. */
export type KeyMapping<T extends KubeObject> = (object: T) => Iterable<ObjectKey>

/** Whether an event is worth a pass. */
export type EventFilter<T extends KubeObject> = (event: ObjectEvent<T>) => boolean

/** The object itself. */
export const itself: KeyMapping<KubeObject> = (object) => [keyOf(object)]

/**
 * The controlling owner of the given kind. Group and kind must match, the version may differ: an owner reference keeps
 * the version it was written with.
 */
export function controllingOwner(kind: Pick<ResourceKind, 'group' | 'kind' | 'namespaced'>): KeyMapping<KubeObject> {
  return (object) => {
    const owner = object.metadata?.ownerReferences?.find((reference) => reference.controller === true)
    if (!owner || owner.kind !== kind.kind || groupOf(owner.apiVersion) !== kind.group) return []
    return [joinKey(kind.namespaced ? object.metadata?.namespace : undefined, owner.name)]
  }
}

/** The name found in a label, in the object's own namespace. */
export function labelled(label: string): KeyMapping<KubeObject> {
  return (object) => {
    const name = object.metadata?.labels?.[label]
    return name ? [joinKey(object.metadata?.namespace, name)] : []
  }
}

/** Passes events of objects that carry the label, whatever its value. */
export function hasLabel<T extends KubeObject>(label: string): EventFilter<T> {
  return ({ object }) => object.metadata?.labels?.[label] !== undefined
}

/** Drops updates that left the generation alone: status and metadata. */
export function generationChanged<T extends KubeObject>(event: ObjectEvent<T>): boolean {
  return event.type !== 'update' || event.old.metadata?.generation !== event.object.metadata?.generation
}

/**
 * Adds the keys an event concerns, each once: a key added twice may have been handed out in between and would run twice.
 * An update counts for the old and the new object: either may name an owner the other lost.
 */
export function enqueueEvent<T extends KubeObject>(
  queue: WorkQueue,
  event: ObjectEvent<T>,
  mapping: KeyMapping<T>,
  filter?: EventFilter<T>,
): void {
  if (filter && !filter(event)) return
  const priority = event.type === 'add' && event.isInitial ? 'low' : 'normal'
  const keys = new Set(mapping(event.object))
  if (event.type === 'update') for (const key of mapping(event.old)) keys.add(key)
  for (const key of keys) queue.add(key, { priority })
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}
