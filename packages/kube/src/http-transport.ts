import { KubeError, type WatchEvent } from '@corral/resources'
import type { Dispatcher, Pool } from 'undici'
import type { ClusterAccess, Credentials } from './cluster-access.js'
import { connectionError } from './http/connection-error.js'
import { type FetchTarget, fetchCall, fetchOpen, type KubeFetch } from './http/fetch-call.js'
import { httpCall, type RawResponse } from './http/http-call.js'
import { http2Call, http2Open, type OpenResponse } from './http/http2-call.js'
import { Http2Connections, type Http2Request, type KeepAlive } from './http/http2-connections.js'
import { jsonLines } from './http/json-lines.js'
import { proxyConnector } from './http/proxy-connector.js'
import { RateLimit, type RateLimitOptions } from './http/rate-limit.js'
import { namingServer } from './http/server-unreachable.js'
import type { KubeTransport, TransportRequest, TransportResponse } from './kube-transport.js'
import type { RequestObserver } from './request-observer.js'
import { requestWords } from './request-words.js'
import { parseRetryAfterMs, responseError } from './response-error.js'
import { connectStream } from './stream/connect-stream.js'
import { StreamConnections } from './stream/stream-connections.js'

export interface HttpTransportOptions {
  /** Connections for calls. Over HTTP/1.1 more calls than that wait in line; HTTP/2 carries many at once on each. */
  connections?: number
  /** HTTP/2 where the server speaks it. */
  allowH2?: boolean
  /** With HTTP/2: streams do not share the connections of calls. */
  separateWatchConnection?: boolean
  /** Calls beyond it wait; streams are not counted. */
  rateLimit?: RateLimitOptions
  userAgent?: string
  /** Told of every exchange. */
  observer?: RequestObserver
  connectTimeoutMs?: number
  /** With HTTP/2: how a connection that fell silent is found out. Every 30 s, with 15 s to answer, unless said. */
  keepAlive?: KeepAlive
  /**
   * Sends calls, watches and logs instead of connections of our own. Exec, attach and port-forward need an upgrade, which
   * fetch cannot make: they go to the server as always.
   */
  fetch?: KubeFetch
}

/** Where requests go: to connections of ours, or to a caller's `fetch`. */
type Lane = Pools | FetchTarget

interface Pools {
  readonly calls: Pool
  /** Streams live for minutes: they never take a connection from a call, and silence does not end them. */
  readonly streams: Pool
  readonly h2?: { readonly calls: Http2Connections; readonly streams: Http2Connections }
  readonly cert: string | undefined
}

/** Talks to an API server over TLS (or plain HTTP) with pooled keep-alive connections. Opens none before the first call. */
export function httpTransport(access: ClusterAccess, options: HttpTransportOptions = {}): KubeTransport {
  const { userAgent = 'corral', observer } = options
  const { host } = access.server
  const basePath = access.server.pathname.replace(/\/$/, '')
  let undici: Undici | undefined
  let pools: Pools | undefined
  const connections = new StreamConnections(access)
  const retired: Pools[] = []
  const limit = options.rateLimit && new RateLimit(options.rateLimit)
  const injected: FetchTarget | undefined = options.fetch && { fetch: options.fetch, origin: access.server.origin }

  function poolsFor(credentials: Credentials, library: Undici): Pools {
    if (pools && pools.cert === credentials.cert) return pools
    // A plugin handed out another certificate: connections belong to the user who opened them.
    if (pools) retire(pools)
    pools = openPools(library, access, credentials, options)
    return pools
  }
  function retire(old: Pools): void {
    retired.push(old)
    // Closing waits for what is under way; destroying at the end settles it.
    for (const pool of [old.calls, old.streams]) void pool.close().catch(() => {})
    for (const connections of h2Of(old)) connections.retire()
  }

  async function prepare(request: TransportRequest, refused: boolean) {
    const credentials = await access.credentials({ refused, signal: request.signal })
    const dispatch = dispatchOptions(request, credentials, basePath, userAgent)
    if (injected) return { lane: injected, options: dispatch }
    // Loaded with the first call: a process that only talks to a server inside it never pays for it. Kept, because
    // asking for a loaded module costs as much as a request. By its default export: bundled, CommonJS has no other.
    undici ??= (await import('undici')).default
    return { lane: poolsFor(credentials, undici), options: dispatch }
  }

  /** A 401 means nothing was done: one more try with fresh credentials is safe for any method. */
  async function withCredentials<R extends { status: number }>(
    request: TransportRequest,
    send: (lane: Lane, options: DispatchOptions) => Promise<R>,
  ): Promise<R> {
    const first = await prepare(request, false)
    const response = await send(first.lane, first.options)
    if (response.status !== 401) return response
    const again = await prepare(request, true)
    if (sameHeaders(first.options, again.options) && first.lane === again.lane) return response
    return send(again.lane, again.options)
  }

  async function call(request: TransportRequest): Promise<TransportResponse> {
    if (limit) await taken(limit, request)
    const send = async (lane: Lane, options: DispatchOptions): Promise<RawResponse> => {
      if ('fetch' in lane) return fetchCall(lane, options, request)
      const { h2, calls } = lane
      return (h2 && (await http2Call(h2.calls, options, request))) ?? httpCall(calls, options, request)
    }
    const sending = () => withCredentials(request, observer ? (...to) => observed(send, ...to) : send)
    return toResponse(await namingServer(access.server, requestWords(request), sending))
  }

  async function taken(bucket: RateLimit, { method, signal }: TransportRequest): Promise<void> {
    const startedMs = performance.now()
    await bucket.take(signal)
    observer?.waited({ method, host, seconds: (performance.now() - startedMs) / 1000 })
  }

  async function observed<R extends { status: number; bytes?: Buffer }>(
    send: (lane: Lane, options: DispatchOptions) => Promise<R>,
    to: Lane,
    options: DispatchOptions,
  ): Promise<R> {
    const startedMs = performance.now()
    let answer: R | undefined
    try {
      answer = await send(to, options)
      return answer
    } finally {
      observer?.exchanged({
        method: options.method,
        host,
        status: answer?.status,
        seconds: (performance.now() - startedMs) / 1000,
        requestBytes: typeof options.body === 'string' ? Buffer.byteLength(options.body) : 0,
        responseBytes: answer?.bytes?.length,
      })
    }
  }

  /** `timeoutMs` bounds the wait for the headers; the body may take as long as it likes. */
  function open(request: TransportRequest): Promise<AsyncIterable<Uint8Array>> {
    const action = requestWords(request)
    return namingServer(access.server, action, () => openStream(request, action))
  }

  async function openStream(request: TransportRequest, action: string): Promise<AsyncIterable<Uint8Array>> {
    const lifetime = linkedLifetime(request, action)
    try {
      const response = await withCredentials(request, async (to, options): Promise<OpenResponse> => {
        const { signal } = lifetime
        const send = async (lane: Lane): Promise<OpenResponse> => {
          if ('fetch' in lane) return fetchOpen(lane, options, signal)
          const { h2, streams } = lane
          const over2 = h2 && (await http2Open(h2.streams, options, { signal }))
          if (over2) return over2
          const answer = await streams.request({ ...options, signal })
          return { status: answer.statusCode, headers: answer.headers, body: answer.body }
        }
        return observer ? observed(send, to, options) : send(to)
      })
      lifetime.hasAnswered()
      if (response.status < 300) return readable(response.body, action, request.signal, lifetime.release)
      const chunks: Uint8Array[] = []
      for await (const chunk of response.body) chunks.push(chunk)
      const bytes = Buffer.concat(chunks)
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
    retried: ({ method }, status) => observer?.retried({ method, host, status }),
    async connect(request) {
      const credentials = await access.credentials({ signal: request.signal })
      const streamed = { ...request, path: `${basePath}${request.path}` }
      return namingServer(access.server, `connect ${streamed.path}`, () =>
        connectStream(access, credentials, connections, streamed, userAgent),
      )
    },
    async close() {
      connections.close()
      const all = pools ? [...retired, pools] : retired
      const error = new KubeError('ConnectionLost', 'the client was closed')
      for (const connections of all.flatMap(h2Of)) connections.destroy(error)
      await Promise.all(all.flatMap(({ calls, streams }) => [calls.destroy(error), streams.destroy(error)]))
    },
  }
}

const lanesWithoutH2 = 32

const h2Of = ({ h2 }: Pools): Http2Connections[] => (h2 ? [...new Set([h2.calls, h2.streams])] : [])

type DispatchOptions = Http2Request & Dispatcher.DispatchOptions

type Undici = typeof import('undici')['default']

function openPools(
  undici: Undici,
  access: ClusterAccess,
  { cert, key }: Credentials,
  options: HttpTransportOptions,
): Pools {
  const { connections = 32, allowH2 = false, connectTimeoutMs = 10_000 } = options
  const { ca, rejectUnauthorized, servername } = access.tls
  const tls = {
    rejectUnauthorized,
    ...(ca === undefined ? {} : { ca }),
    ...(servername === undefined ? {} : { servername }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  }
  const shared: Pool.Options = {
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 60_000,
    maxResponseSize: -1,
    connect: {
      timeout: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      ...tls,
    },
  }
  const { origin } = access.server
  if (access.proxy) shared.connect = proxyConnector(undici, access, { ...tls, timeout: connectTimeoutMs })
  // One HTTP/2 connection does the work of many: where the server speaks HTTP/1.1 after all, as many take its place.
  const lanes = allowH2 ? Math.max(connections, lanesWithoutH2) : connections
  const calls1 = new undici.Pool(origin, { ...shared, connections: lanes })
  const pools = { calls: calls1, streams: new undici.Pool(origin, shared) }
  if (!allowH2 || access.server.protocol !== 'https:') return { ...pools, cert }
  const { server, proxy } = access
  const { keepAlive } = options
  const over2 = (count: number): Http2Connections =>
    new Http2Connections({ origin: server, tls, connections: count, connectTimeoutMs, proxy, keepAlive })
  const calls = over2(connections)
  return { ...pools, h2: { calls, streams: options.separateWatchConnection ? over2(1) : calls }, cert }
}

function dispatchOptions(
  request: TransportRequest,
  credentials: Credentials,
  basePath: string,
  userAgent: string,
): DispatchOptions {
  const headers: Record<string, string | string[]> = { accept: 'application/json', 'user-agent': userAgent }
  if (credentials.authorization !== undefined) headers.authorization = credentials.authorization
  if (request.contentType !== undefined) headers['content-type'] = request.contentType
  if (credentials.impersonation) Object.assign(headers, credentials.impersonation)
  const search = request.query?.size ? `?${request.query}` : ''
  return {
    method: request.method,
    path: `${basePath}${request.path}${search}`,
    headers,
    ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
  }
}

function sameHeaders(a: DispatchOptions, b: DispatchOptions): boolean {
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
