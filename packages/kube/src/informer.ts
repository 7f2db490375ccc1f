import { type Logger, silentLogger } from '@corral/ports'
import type { KubeObject, ResourceKind, Stored } from '@corral/resources'
import type { Delta, KubeClient, ObjectRef } from './kube-client.js'

/** Told of every change once it is in the store. What a handler throws is logged and stops nothing. */
export interface InformerHandler<T extends KubeObject> {
  add?(object: Stored<T>): void
  update?(object: Stored<T>, old: Stored<T>): void
  delete?(object: Stored<T>): void
}

/** Values an object is filed under in one index. */
export type Indexer<T extends KubeObject> = (object: Stored<T>) => readonly string[]

export interface InformerOptions<T extends KubeObject> {
  client: Pick<KubeClient, 'observe'>
  kind: ResourceKind<T>
  /** Absent: all namespaces. */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  indexers?: Readonly<Record<string, Indexer<T>>>
  /** Applied before an object is stored, to drop what is never read. Metadata must stay. */
  transform?: (object: Stored<T>) => Stored<T>
  /** Hands every object to `update` again (old and new the same) this often; off without it. */
  resyncMs?: number
  log?: Logger
  signal?: AbortSignal
  /** Told of every failure the informer recovers from by itself. */
  onError?: (error: unknown) => void
}

/** A live copy of the objects of one kind, fed by one stream however many read it. Objects are shared: never change them. */
export interface Informer<T extends KubeObject> {
  readonly kind: ResourceKind<T>
  /** Settles once the store holds everything; rejects when the informer stops before that. */
  readonly hasSynced: Promise<void>
  readonly isSynced: boolean
  /** By `namespace/name` (`name` alone for cluster-scoped kinds) or by reference. */
  get(key: string | ObjectRef): Stored<T> | undefined
  list(namespace?: string): Stored<T>[]
  /** Throws for an index that was not declared. */
  byIndex(index: string, value: string): Stored<T>[]
  /** What is in the store arrives as `add` first. Returns how to let go. */
  subscribe(handler: InformerHandler<T>): () => void
  /** Ends the stream; settles after the last handler ran. Safe to repeat. */
  stop(): Promise<void>
}

/** Starts watching at once. Ends through `stop` or `signal`. */
export function createInformer<T extends KubeObject>(options: InformerOptions<T>): Informer<T> {
  const { client, kind, indexers = {}, log = silentLogger, resyncMs } = options
  const handlers = new Set<InformerHandler<T>>()
  const indexes = new Map(Object.entries(indexers).map(([name, indexer]) => [name, createIndex(indexer)]))
  const lifetime = new AbortController()
  let store: ReadonlyMap<string, Stored<T>> = new Map()
  let isSynced = false
  let settleSynced: { resolve(): void; reject(error: Error): void }
  const hasSynced = new Promise<void>((resolve, reject) => {
    settleSynced = { resolve, reject }
  })
  hasSynced.catch(() => {}) // callers that await it still get the rejection

  function tell(handler: InformerHandler<T>, delta: Delta<T>): void {
    try {
      if (delta.type === 'DELETED') handler.delete?.(delta.object)
      else if (delta.old) handler.update?.(delta.object, delta.old)
      else handler.add?.(delta.object)
    } catch (error) {
      log.error('informer handler failed', { kind: kind.kind, error })
    }
  }

  function take(deltas: readonly Delta<T>[]): void {
    for (const delta of deltas) {
      for (const index of indexes.values()) index.change(delta)
    }
    for (const delta of deltas) {
      for (const handler of handlers) tell(handler, delta)
    }
  }

  async function run(): Promise<void> {
    const { namespace, labelSelector, fieldSelector, transform, onError } = options
    const batches = client.observe(kind, {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(transform === undefined ? {} : { transform }),
      signal: lifetime.signal,
      onError(error) {
        log.debug('watch interrupted', { kind: kind.kind, error })
        onError?.(error)
      },
    })
    for await (const { deltas, known, complete } of batches) {
      store = known
      isSynced = complete
      take(deltas)
      if (complete) settleSynced.resolve()
    }
  }

  function resync(): void {
    for (const object of store.values()) {
      for (const handler of handlers) tell(handler, { type: 'MODIFIED', object, old: object })
    }
  }

  const abort = () => lifetime.abort(options.signal?.reason)
  if (options.signal?.aborted) abort()
  options.signal?.addEventListener('abort', abort, { once: true })
  const timer = resyncMs === undefined ? undefined : setInterval(resync, resyncMs).unref()
  const done = run()
    .catch((error: unknown) => {
      log.error('informer stopped', { kind: kind.kind, error })
      settleSynced.reject(error instanceof Error ? error : new Error(String(error)))
    })
    .finally(() => {
      clearInterval(timer)
      options.signal?.removeEventListener('abort', abort)
      settleSynced.reject(new Error(`the informer of ${kind.plural} stopped before it had everything`))
    })

  return {
    kind,
    hasSynced,
    get isSynced() {
      return isSynced
    },
    get: (key) => store.get(typeof key === 'string' ? key : refKey(key)),
    list(namespace) {
      const all = [...store.values()]
      return namespace === undefined ? all : all.filter((object) => object.metadata.namespace === namespace)
    },
    byIndex(name, value) {
      const index = indexes.get(name)
      if (!index) throw new RangeError(`no index "${name}" on ${kind.plural}`)
      return index.get(value)
    },
    subscribe(handler) {
      for (const object of store.values()) tell(handler, { type: 'ADDED', object })
      handlers.add(handler)
      return () => void handlers.delete(handler)
    },
    stop() {
      lifetime.abort()
      return done
    },
  }
}

const refKey = ({ namespace, name }: ObjectRef): string => (namespace ? `${namespace}/${name}` : name)

function createIndex<T extends KubeObject>(indexer: Indexer<T>) {
  const byValue = new Map<string, Map<string, Stored<T>>>()
  const remove = (object: Stored<T>, value: string) => {
    const bucket = byValue.get(value)
    bucket?.delete(object.metadata.uid)
    if (bucket?.size === 0) byValue.delete(value)
  }
  return {
    change({ type, object, old }: Delta<T>): void {
      if (old) for (const value of indexer(old)) remove(old, value)
      if (type === 'DELETED') return
      for (const value of indexer(object)) {
        const bucket = byValue.get(value) ?? new Map<string, Stored<T>>()
        byValue.set(value, bucket.set(object.metadata.uid, object))
      }
    },
    get: (value: string): Stored<T>[] => [...(byValue.get(value)?.values() ?? [])],
  }
}
