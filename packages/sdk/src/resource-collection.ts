import {
  type CallOptions,
  createInformer,
  type DeleteOptions,
  type Informer,
  type InformerOptions,
  type KubeClient,
  type PatchOptions,
  type WriteOptions,
} from '@corral/kube'
import { isNotFound, type KubeObject, type ResourceKind, type Stored, type WatchEvent } from '@corral/resources'
import { translated, translatedStream } from './sandbox-error.js'

/** Where a collection finds its cluster; resolved at the first call. */
export interface ClusterScope {
  kube(): Promise<KubeClient>
  namespace(): Promise<string>
}

export interface InNamespace {
  /** Instead of the client's namespace. */
  namespace?: string | undefined
}

export interface SelectOptions {
  /** `false`: all namespaces; absent: the client's. */
  namespace?: string | false | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  signal?: AbortSignal | undefined
}

/** The objects of one kind, in one namespace unless told otherwise. */
export class ResourceCollection<T extends KubeObject> {
  readonly kind: ResourceKind<T>
  readonly #scope: ClusterScope

  constructor(kind: ResourceKind<T>, scope: ClusterScope) {
    this.kind = kind
    this.#scope = scope
  }

  create(object: T, options: WriteOptions & InNamespace = {}): Promise<Stored<T>> {
    return translated(async () => {
      const { namespace, ...call } = options
      return (await this.#scope.kube()).create(this.kind, await this.#placed(object, namespace), call)
    }, options.signal)
  }

  get(name: string, options: CallOptions & InNamespace = {}): Promise<Stored<T>> {
    return translated(async () => {
      const { namespace, ...call } = options
      return (await this.#scope.kube()).get(this.kind, await this.#ref(name, namespace), call)
    }, options.signal)
  }

  find(name: string, options: CallOptions & InNamespace = {}): Promise<Stored<T> | undefined> {
    return translated(async () => {
      const { namespace, ...call } = options
      return (await this.#scope.kube()).find(this.kind, await this.#ref(name, namespace), call)
    }, options.signal)
  }

  async exists(name: string, options: CallOptions & InNamespace = {}): Promise<boolean> {
    return (await this.find(name, options)) !== undefined
  }

  /** Every object, fetched page by page as the loop goes on. */
  list(options: SelectOptions = {}): AsyncIterable<Stored<T>> {
    const scope = this.#scope
    const kind = this.kind
    return translatedStream(async function* () {
      yield* (await scope.kube()).items(kind, { ...(await selection(scope, options)), limit: 500 })
    }, options.signal)
  }

  /** Replaces the object; `Conflict` when it changed since it was read. */
  update(object: T, options: WriteOptions = {}): Promise<Stored<T>> {
    return translated(
      async () => (await this.#scope.kube()).update(this.kind, await this.#placed(object), options),
      options.signal,
    )
  }

  /** A JSON merge patch: the only patch besides apply that custom kinds support everywhere. */
  patch(name: string, change: object, options: PatchOptions & InNamespace = {}): Promise<Stored<T>> {
    return translated(async () => {
      const { namespace, ...call } = options
      const ref = await this.#ref(name, namespace)
      return (await this.#scope.kube()).patch(this.kind, ref, { type: 'merge', body: change }, call)
    }, options.signal)
  }

  /** Server-side apply. */
  apply(object: T, options: PatchOptions = {}): Promise<Stored<T>> {
    return translated(
      async () => (await this.#scope.kube()).apply(this.kind, await this.#placed(object), options),
      options.signal,
    )
  }

  /** Deletes the object; absent is done. */
  delete(name: string, options: DeleteOptions & InNamespace = {}): Promise<void> {
    return translated(async () => {
      const { namespace, ...call } = options
      try {
        await (await this.#scope.kube()).delete(this.kind, await this.#ref(name, namespace), call)
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
    }, options.signal)
  }

  /** The present objects as ADDED, then every change, for ever: lost connections are resumed. Ends through `signal`. */
  watch(options: SelectOptions & { resourceVersion?: string } = {}): AsyncIterable<WatchEvent<Stored<T>>> {
    const scope = this.#scope
    const kind = this.kind
    return translatedStream(async function* () {
      const { resourceVersion } = options
      const where = await selection(scope, options)
      yield* (await scope.kube()).watch(kind, { ...where, ...(resourceVersion ? { resourceVersion } : {}) })
    }, options.signal)
  }

  /** A live copy of the objects, fed by one watch however many read it; `stop` or `signal` ends it. */
  informer(options: SelectOptions & { indexers?: InformerOptions<T>['indexers'] } = {}): Promise<Informer<T>> {
    return translated(async () => {
      const { indexers } = options
      const client = await this.#scope.kube()
      const where = await selection(this.#scope, options)
      return createInformer({ client, kind: this.kind, ...where, ...(indexers ? { indexers } : {}) })
    }, options.signal)
  }

  async #ref(name: string, namespace?: string): Promise<{ name: string; namespace: string }> {
    return { name, namespace: namespace ?? (await this.#scope.namespace()) }
  }

  async #placed(object: T, namespace?: string): Promise<T> {
    const target = namespace ?? object.metadata?.namespace ?? (await this.#scope.namespace())
    return { ...object, metadata: { ...object.metadata, namespace: target } }
  }
}

async function selection(scope: ClusterScope, options: SelectOptions) {
  const { namespace, labelSelector, fieldSelector, signal } = options
  return {
    ...(namespace === false ? {} : { namespace: namespace ?? (await scope.namespace()) }),
    ...(labelSelector ? { labelSelector } : {}),
    ...(fieldSelector ? { fieldSelector } : {}),
    ...(signal ? { signal } : {}),
  }
}
