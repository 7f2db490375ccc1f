import type { ByteStream, DuplexProcess, LogStreamOptions } from '@corral/ports'
import type { KubeList, KubeObject, ResourceKind, Status, Stored, WatchEvent } from '@corral/resources'

export interface ObjectRef {
  name: string
  namespace?: string
}

export interface CallOptions {
  signal?: AbortSignal
  /** Bounds this one call; the client's default applies without it. */
  timeoutMs?: number
}

export interface WriteOptions extends CallOptions {
  fieldManager?: string
  dryRun?: boolean
  fieldValidation?: 'Ignore' | 'Warn' | 'Strict'
}

export interface ListOptions extends CallOptions {
  /** Absent: all namespaces. */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  limit?: number
  continue?: string
  resourceVersion?: string
  resourceVersionMatch?: 'Exact' | 'NotOlderThan'
}

export interface WatchOptions {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /** Start after this version. Absent: the current objects come first, as ADDED. */
  resourceVersion?: string
  signal?: AbortSignal
  /** Told of every failure the watch recovers from by itself. */
  onError?: (error: unknown) => void
}

/** One change of one object. `old` is its state before, where that is known. */
export type Delta<T extends KubeObject> =
  | { readonly type: 'ADDED'; readonly object: Stored<T>; readonly old?: undefined }
  | { readonly type: 'MODIFIED' | 'DELETED'; readonly object: Stored<T>; readonly old?: Stored<T> }

/** Changes that became known together. */
export interface ObservedBatch<T extends KubeObject> {
  readonly deltas: readonly Delta<T>[]
  /** Every object known so far by `namespace/name`, these changes included; the watch goes on writing to it. */
  readonly known: ReadonlyMap<string, Stored<T>>
  /** Whether `known` holds all objects the server has. */
  readonly complete: boolean
}

export interface ObserveOptions<T extends KubeObject> extends WatchOptions {
  /** Applied to every object before it is kept, to drop what is never read. Metadata must stay. */
  transform?: (object: Stored<T>) => Stored<T>
}

export interface DeleteOptions extends WriteOptions {
  gracePeriodSeconds?: number
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  preconditions?: { uid?: string; resourceVersion?: string }
}

export type PatchBody =
  | { type: 'merge'; body: object }
  | { type: 'json'; body: readonly object[] }
  | { type: 'strategic'; body: object }
  | { type: 'apply'; body: object }

export interface PatchOptions extends WriteOptions {
  subresource?: string
  force?: boolean
}

export interface ExecOptions {
  container?: string
  command: readonly string[]
  stdin?: boolean
  tty?: boolean
  /** Aborted at any time it ends the process. */
  signal?: AbortSignal
  /** Bounds the wait until the stream is open, not the life of the process. */
  timeoutMs?: number
}

/**
 * The only way to talk to an API server. `get` throws a `KubeError` with code `NotFound`, `find` answers undefined.
 * Every method sends exactly one request, except that idempotent reads are retried on connection loss, 429 and 503.
 * Objects handed out may be shared and frozen: copy before changing them.
 */
export interface KubeClient {
  /** Namespace of the kubeconfig's context, `default` where it names none. */
  readonly defaultNamespace: string
  get<T extends KubeObject>(kind: ResourceKind<T>, ref: ObjectRef, options?: CallOptions): Promise<Stored<T>>
  find<T extends KubeObject>(
    kind: ResourceKind<T>,
    ref: ObjectRef,
    options?: CallOptions,
  ): Promise<Stored<T> | undefined>
  list<T extends KubeObject>(kind: ResourceKind<T>, options?: ListOptions): Promise<KubeList<T>>
  /** All items, fetched page by page. */
  items<T extends KubeObject>(kind: ResourceKind<T>, options?: ListOptions): AsyncIterable<Stored<T>>
  /** Namespace from the object's metadata, else the default one. */
  create<T extends KubeObject>(kind: ResourceKind<T>, object: T, options?: WriteOptions): Promise<Stored<T>>
  update<T extends KubeObject>(kind: ResourceKind<T>, object: T, options?: WriteOptions): Promise<Stored<T>>
  updateStatus<T extends KubeObject>(kind: ResourceKind<T>, object: T, options?: WriteOptions): Promise<Stored<T>>
  patch<T extends KubeObject>(
    kind: ResourceKind<T>,
    ref: ObjectRef,
    patch: PatchBody,
    options?: PatchOptions,
  ): Promise<Stored<T>>
  /** Server-side apply; `fieldManager` defaults to the client's user agent name. */
  apply<T extends KubeObject>(kind: ResourceKind<T>, object: T, options?: PatchOptions): Promise<Stored<T>>
  delete<T extends KubeObject>(
    kind: ResourceKind<T>,
    ref: ObjectRef,
    options?: DeleteOptions,
  ): Promise<Stored<T> | Status>
  deleteCollection<T extends KubeObject>(kind: ResourceKind<T>, options: ListOptions & DeleteOptions): Promise<void>
  scale(kind: ResourceKind, ref: ObjectRef, replicas: number, options?: WriteOptions): Promise<void>
  /**
   * Events after `resourceVersion`, for ever: reconnects, resumes, and on 410 lists anew and yields the difference as
   * ADDED / MODIFIED / DELETED. BOOKMARK and ERROR never reach the caller. Ends only through `signal` or `break`.
   */
  watch<T extends KubeObject>(kind: ResourceKind<T>, options?: WatchOptions): AsyncIterable<WatchEvent<Stored<T>>>
  /** What `watch` is made of and informers are built on: the same changes with the set they lead to. */
  observe<T extends KubeObject>(kind: ResourceKind<T>, options?: ObserveOptions<T>): AsyncIterable<ObservedBatch<T>>
  exec(pod: ObjectRef, options: ExecOptions): Promise<DuplexProcess>
  attach(pod: ObjectRef, options: Omit<ExecOptions, 'command'>): Promise<DuplexProcess>
  logs(pod: ObjectRef, options?: Partial<LogStreamOptions>): AsyncIterable<Uint8Array>
  /** One connection to one port of the pod. */
  portForward(pod: ObjectRef, port: number, options?: CallOptions): Promise<ByteStream>
  /** Any GET by path, for discovery, health and version. */
  raw(path: string, options?: CallOptions): Promise<{ status: number; body: unknown }>
  close(): Promise<void>
}
