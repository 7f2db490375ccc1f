import { KubeError, type WatchEvent } from '@corral/resources'
import type { Dispatcher, Pool } from 'undici'
import type { ClusterAccess, Credentials } from '../cluster-access.js'
import type { KubeTransport, TransportRequest, TransportResponse } from '../kube-transport.js'
import { parseRetryAfterMs, responseError } from '../response-error.js'
import { connectStream } from '../stream/connect-stream.js'
import { StreamConnections } from '../stream/stream-connections.js'
import { connectionError } from './connection-error.js'
import { httpCall, type RawResponse } from './http-call.js'
import { jsonLines } from './json-lines.js'

export interface HttpTransportOptions {
  /** Connections for calls; more calls than that wait in line. */
  connections?: number
  /** Offer HTTP/2 where the server speaks it. */
  allowH2?: boolean
  userAgent?: string
  connectTimeoutMs?: number
}

interface Pools {
  readonly calls: Pool
  /** DELETE with a body: undici breaks an HTTP/2 connection over it, so those go over HTTP/1.1. */
  readonly deletes: Pool
  /** Streams live for minutes: they never take a connection from a call, and silence does not end them. */
  readonly streams: Pool
  readonly cert: string | undefined
}

/** Talks to an API server over TLS (or plain HTTP) with pooled keep-alive connections. Opens none before the first call. */
export function httpTransport(access: ClusterAccess, options: HttpTransportOptions = {}): KubeTransport {
  const { userAgent = 'corral' } = options
  const basePath = access.server.pathname.replace(/\/$/, '')
  let undici: Undici | undefined
  let pools: Pools | undefined
  const connections = new StreamConnections(access)
  const retired: Pool[] = []

  function poolsFor(credentials: Credentials, library: Undici): Pools {
    if (pools && pools.cert === credentials.cert) return pools
    // A plugin handed out another certificate: connections belong to the user who opened them.
    if (pools) retire(pools)
    pools = openPools(library, access, credentials, options)
    return pools
  }
  function retire({ calls, deletes, streams }: Pools): void {
    for (const pool of [calls, deletes, streams]) {
      retired.push(pool)
      void pool.close().catch(() => {}) // closing waits for what is under way; destroying at the end settles it
    }
  }

  async function prepare(request: TransportRequest, refused: boolean) {
    const credentials = await access.credentials({ refused, signal: request.signal })
    // Loaded with the first call: a process that only talks to a server inside it never pays for it. Kept, because
    // asking for a loaded module costs as much as a request. By its default export: bundled, CommonJS has no other.
    undici ??= (await import('undici')).default
    return { pools: poolsFor(credentials, undici), options: dispatchOptions(request, credentials, basePath, userAgent) }
  }

  /** A 401 means nothing was done: one more try with fresh credentials is safe for any method. */
  async function withCredentials<R extends { status: number }>(
    request: TransportRequest,
    send: (pools: Pools, options: Dispatcher.DispatchOptions) => Promise<R>,
  ): Promise<R> {
    const first = await prepare(request, false)
    const response = await send(first.pools, first.options)
    if (response.status !== 401) return response
    const again = await prepare(request, true)
    if (sameHeaders(first.options, again.options) && first.pools === again.pools) return response
    return send(again.pools, again.options)
  }

  async function call(request: TransportRequest): Promise<TransportResponse> {
    const isDelete = request.method === 'DELETE' && request.body !== undefined
    const send = ({ calls, deletes }: Pools, options: Dispatcher.DispatchOptions): Promise<RawResponse> =>
      httpCall(isDelete ? deletes : calls, options, request)
    return toResponse(await withCredentials(request, send))
  }

  /** `timeoutMs` bounds the wait for the headers; the body may take as long as it likes. */
  async function open(request: TransportRequest): Promise<AsyncIterable<Uint8Array>> {
    const action = `${request.method} ${request.path}`
    const lifetime = linkedLifetime(request, action)
    try {
      const response = await withCredentials(request, async (live, options) => {
        const answer = await live.streams.request({ ...options, signal: lifetime.signal })
        return { status: answer.statusCode, headers: answer.headers, body: answer.body }
      })
      lifetime.hasAnswered()
      if (response.status < 300) return readable(response.body, action, request.signal, lifetime.release)
      const bytes = Buffer.from(await response.body.arrayBuffer())
      throw responseError(toResponse({ ...response, bytes }), action)
    } catch (error) {
      lifetime.release()
      throw lifetime.signal.aborted ? lifetime.signal.reason : connectionError(error, action)
    }
  }

  return {
    inProcess: false,
    call,
    async watch(request) {
      return jsonLines(await open(request)) as AsyncIterable<WatchEvent> // the server is who says what an event is
    },
    stream: open,
    async connect(request) {
      const credentials = await access.credentials({ signal: request.signal })
      const streamed = { ...request, path: `${basePath}${request.path}` }
      return connectStream(access, credentials, connections, streamed, userAgent)
    },
    async close() {
      connections.close()
      const all = pools ? [...retired, pools.calls, pools.deletes, pools.streams] : retired
      const error = new KubeError('ConnectionLost', 'the client was closed')
      await Promise.all(all.map((pool) => pool.destroy(error)))
    },
  }
}

/** Deletes that may be under way at once where they need connections of their own. */
const deleteConnections = 4

type Undici = typeof import('undici')['default']

function openPools(
  undici: Undici,
  access: ClusterAccess,
  { cert, key }: Credentials,
  options: HttpTransportOptions,
): Pools {
  const { connections = 32, allowH2 = false, connectTimeoutMs = 10_000 } = options
  const { ca, rejectUnauthorized, servername } = access.tls
  const shared: Pool.Options = {
    allowH2,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 60_000,
    maxResponseSize: -1,
    connect: {
      timeout: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      rejectUnauthorized,
      ...(ca === undefined ? {} : { ca }),
      ...(servername === undefined ? {} : { servername }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  }
  const { origin } = access.server
  const calls = new undici.Pool(origin, { ...shared, connections })
  const deletes = allowH2
    ? new undici.Pool(origin, { ...shared, connections: deleteConnections, allowH2: false })
    : calls
  return { calls, deletes, streams: new undici.Pool(origin, shared), cert }
}

function dispatchOptions(
  request: TransportRequest,
  credentials: Credentials,
  basePath: string,
  userAgent: string,
): Dispatcher.DispatchOptions & { headers: Record<string, string> } {
  const headers: Record<string, string> = { accept: 'application/json', 'user-agent': userAgent }
  if (credentials.authorization !== undefined) headers.authorization = credentials.authorization
  if (request.contentType !== undefined) headers['content-type'] = request.contentType
  const search = request.query?.size ? `?${request.query}` : ''
  return {
    method: request.method,
    path: `${basePath}${request.path}${search}`,
    headers,
    ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
  }
}

function sameHeaders(a: Dispatcher.DispatchOptions, b: Dispatcher.DispatchOptions): boolean {
  return JSON.stringify(a.headers) === JSON.stringify(b.headers)
}

function toResponse({ status, headers, bytes }: RawResponse): TransportResponse {
  const retryAfter = headers['retry-after']
  const retryAfterMs = typeof retryAfter === 'string' ? parseRetryAfterMs(retryAfter, new Date()) : undefined
  const body = parseBody(bytes, headers['content-type'])
  return retryAfterMs === undefined ? { status, body } : { status, body, retryAfterMs }
}

function parseBody(bytes: Buffer, contentType: string | string[] | undefined): unknown {
  if (bytes.length === 0) return undefined
  const text = bytes.toString('utf8')
  if (typeof contentType !== 'string' || !contentType.startsWith('application/json')) return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new KubeError('ConnectionLost', 'the server sent a body that is no JSON', { cause })
  }
}

/** A signal for one stream: aborts with the caller's, or when no headers came in time. */
function linkedLifetime({ signal, timeoutMs }: TransportRequest, action: string) {
  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort, { once: true })
  const isLate = () => controller.abort(new KubeError('Timeout', `${action}: no answer within ${timeoutMs} ms`))
  const timer = timeoutMs === undefined ? undefined : setTimeout(isLate, timeoutMs)
  return {
    signal: controller.signal,
    hasAnswered: () => clearTimeout(timer),
    release() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    },
  }
}

/** The bytes of a response. A lost connection throws `ConnectionLost`; an abort just ends them. */
async function* readable(
  body: AsyncIterable<Uint8Array>,
  action: string,
  signal: AbortSignal | undefined,
  release: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    if (signal?.aborted) return
    throw connectionError(error, action)
  } finally {
    release()
  }
}
