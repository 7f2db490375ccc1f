import { createInformer, type Indexer, type KubeClient } from '@corral/kube'
import type { Clock, Logger } from '@corral/ports'
import type { KubeObject, ResourceKind, Stored } from '@corral/resources'
import { keyOf, type ObjectEvent, type ObjectKey } from '@corral/runtime'

export interface StoreOptions<T extends KubeObject> {
  client: KubeClient
  kind: ResourceKind<T>
  indexers?: Readonly<Record<string, Indexer<T>>>
  labelSelector?: string
  transform?: (object: Stored<T>) => Stored<T>
  clock: Clock
  log: Logger
  signal: AbortSignal
}

/**
 * What a controller knows of one kind. It may be older than the server, but never older than this process's own writes
 * that were handed to `remember`. Objects are shared: never change them.
 */
export interface Store<T extends KubeObject> {
  readonly kind: ResourceKind<T>
  readonly synced: Promise<void>
  get(key: ObjectKey): Stored<T> | undefined
  list(): Stored<T>[]
  byIndex(index: string, value: string): Stored<T>[]
  onEvent(handler: (event: ObjectEvent<Stored<T>>) => void): void
  /** The server's answer to a write of ours; `get` prefers it until the watch has caught up. Returns it. */
  remember(object: Stored<T>): Stored<T>
  stop(): Promise<void>
}

/** A remembered write that the watch never confirms (a lost event) is forgotten after this time. */
const rememberedForMs = 30_000

/** A store fed by a watch of its own. */
export function informedStore<T extends KubeObject>(options: StoreOptions<T>): Store<T> {
  const { client, kind, clock, log, signal } = options
  const informer = createInformer<T>({
    client,
    kind,
    log,
    signal,
    transform: options.transform ?? withoutManagedFields,
    ...(options.indexers && { indexers: options.indexers }),
    ...(options.labelSelector !== undefined && { labelSelector: options.labelSelector }),
  })
  const written = new Map<ObjectKey, { object: Stored<T>; untilMs: number }>()
  const settle = (seen: Stored<T>): void => {
    const own = written.get(keyOf(seen))
    if (own && !isNewer(own.object, seen)) written.delete(keyOf(seen))
  }
  informer.subscribe({ add: settle, update: settle, delete: settle })

  return {
    kind,
    synced: informer.hasSynced,
    get(key) {
      const seen = informer.get(key)
      const own = written.get(key)
      if (!own) return seen
      if (own.untilMs > clock.now().getTime() && (!seen || isNewer(own.object, seen))) return own.object
      written.delete(key)
      return seen
    },
    list: () => informer.list(),
    byIndex: (index, value) => informer.byIndex(index, value),
    onEvent(handler) {
      informer.subscribe({
        add: (object) => handler({ type: 'add', object, isInitial: !informer.isSynced }),
        update: (object, old) => handler({ type: 'update', object, old }),
        delete: (object) => handler({ type: 'delete', object }),
      })
    },
    remember(object) {
      const seen = informer.get(keyOf(object))
      if (!seen || isNewer(object, seen)) {
        written.set(keyOf(object), { object, untilMs: clock.now().getTime() + rememberedForMs })
      }
      return object
    },
    stop: () => informer.stop(),
  }
}

/** Resource versions of one server count upwards; a longer number is a larger one. */
function isNewer<T extends KubeObject>(a: Stored<T>, b: Stored<T>): boolean {
  const left = a.metadata.resourceVersion
  const right = b.metadata.resourceVersion
  return left.length === right.length ? left > right : left.length > right.length
}

/** managedFields are never read here and are the largest part of many objects. */
export function withoutManagedFields<T extends KubeObject>(object: Stored<T>): Stored<T> {
  if (!object.metadata.managedFields) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
