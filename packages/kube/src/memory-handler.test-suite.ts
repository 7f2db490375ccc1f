import type { ApiHandler, ApiRequest, ApiResponse, WatchFrame } from '@corral/ports'
import type { KubeObject, Stored, WatchEvent } from '@corral/resources'

type Listener = (event: WatchEvent) => void

/** A very small API server: one flat store, versions and watches from any version. For tests of clients only. */
export class MemoryHandler implements ApiHandler {
  readonly requests: ApiRequest[] = []
  readonly objects = new Map<string, Stored<KubeObject>>()
  private readonly log: { rv: number; event: WatchEvent }[] = []
  private readonly listeners = new Set<Listener>()
  private readonly closers = new Set<() => void>()
  private head = 1
  private uids = 0
  /** Versions at or below this one are compacted. */
  oldest = 0

  async handle(request: ApiRequest): Promise<ApiResponse> {
    this.requests.push(request)
    const { method, path, query } = request
    if (method === 'POST') return object(201, this.put(path, request.body as KubeObject, true))
    if (method === 'PUT') {
      const body = request.body as KubeObject
      const version = body.metadata?.resourceVersion
      if (version !== undefined && version !== this.objects.get(path)?.metadata.resourceVersion)
        return failure(409, 'Conflict', 'the object has been modified')
      return object(200, this.put(path.replace(/\/[^/]+$/, ''), body, false))
    }
    if (method === 'DELETE') return this.remove(path)
    if (query.get('watch')) return this.watch(query, request.signal)
    const found = this.objects.get(path)
    if (found) return object(200, found)
    const collection = `${path}/`
    if (!/s$/.test(path)) return failure(404, 'NotFound', `${path} not found`)
    const items = [...this.objects].filter(([key]) => key.startsWith(collection)).map(([, item]) => item)
    return object(200, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: String(this.head) }, items })
  }

  async connect(): Promise<ApiResponse> {
    return failure(400, 'BadRequest', 'no streams here')
  }

  put(collection: string, body: KubeObject, create: boolean): Stored<KubeObject> {
    const path = `${collection}/${body.metadata?.name}`
    const old = this.objects.get(path)
    const stored = Object.freeze({
      ...body,
      metadata: {
        ...body.metadata,
        uid: create ? `uid-${++this.uids}` : old?.metadata.uid,
        resourceVersion: String(++this.head),
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
    }) as Stored<KubeObject>
    this.objects.set(path, stored)
    this.publish({ type: create ? 'ADDED' : 'MODIFIED', object: stored })
    return stored
  }

  remove(path: string): ApiResponse {
    const old = this.objects.get(path)
    if (!old) return failure(404, 'NotFound', `${path} not found`)
    this.objects.delete(path)
    const last = { ...old, metadata: { ...old.metadata, resourceVersion: String(++this.head) } }
    this.publish({ type: 'DELETED', object: last })
    return object(200, last)
  }

  /** Ends all watches, as a restart does. */
  dropWatches(): void {
    for (const close of this.closers) close()
  }

  /** Forgets all history, as compaction does. */
  compact(): void {
    this.log.length = 0
    this.oldest = this.head
  }

  private publish(event: WatchEvent): void {
    this.log.push({ rv: this.head, event })
    for (const listener of this.listeners) listener(event)
  }

  private watch(query: URLSearchParams, signal: AbortSignal | undefined): ApiResponse {
    const from = Number(query.get('resourceVersion') ?? 0)
    const queue: WatchEvent[] = []
    if (from < this.oldest) queue.push({ type: 'ERROR', object: expired(from) as KubeObject })
    else queue.push(...this.log.filter(({ rv }) => rv > from).map(({ event }) => event))
    return { status: 200, headers: {}, body: { type: 'watch', frames: this.frames(queue, signal) } }
  }

  /** Listens from now on, not from the first read: what happens in between belongs to the watch. */
  private frames(queue: WatchEvent[], signal: AbortSignal | undefined): AsyncGenerator<WatchFrame> {
    let wake = () => {}
    let closed = false
    const listener = (event: WatchEvent) => {
      queue.push(event)
      wake()
    }
    const close = () => {
      closed = true
      wake()
    }
    this.listeners.add(listener)
    this.closers.add(close)
    signal?.addEventListener('abort', close)
    const next = (): Promise<void> =>
      new Promise((resolve) => {
        wake = resolve
      })
    return this.drain(
      queue,
      next,
      () => closed,
      () => {
        this.listeners.delete(listener)
        this.closers.delete(close)
      },
    )
  }

  private async *drain(
    queue: WatchEvent[],
    next: () => Promise<void>,
    isClosed: () => boolean,
    leave: () => void,
  ): AsyncGenerator<WatchFrame> {
    try {
      while (true) {
        for (let event = queue.shift(); event; event = queue.shift()) {
          const line = `${JSON.stringify(event)}\n`
          yield { event, line: () => line }
        }
        if (isClosed()) return
        await next()
      }
    } finally {
      leave()
    }
  }

  get watchers(): number {
    return this.listeners.size
  }
}

function object(status: number, value: object): ApiResponse {
  return { status, headers: {}, body: { type: 'object', value, json: () => JSON.stringify(value) } }
}

function expired(rv: number) {
  const message = `too old resource version: ${rv}`
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason: 'Expired', code: 410 }
}

function failure(code: number, reason: string, message: string): ApiResponse {
  return object(code, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code })
}
