import { KubeError } from '@corral/resources'
import { requestWords } from '../request-words.js'
import { connectionError } from './connection-error.js'
import type { RawResponse } from './http-call.js'
import type { OpenResponse } from './http2-call.js'
import type { Http2Request } from './http2-connections.js'

/** The global `fetch` fits. A caller that passes its own is responsible for TLS, client certificates and proxies. */
export type KubeFetch = (url: string, init: RequestInit) => Promise<Response>

/** Where a caller's `fetch` sends to. */
export interface FetchTarget {
  readonly fetch: KubeFetch
  readonly origin: string
}

/** One request and its whole response. The deadline covers both. */
export async function fetchCall(
  target: FetchTarget,
  request: Http2Request,
  limits: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
): Promise<RawResponse> {
  const { signal, timeoutMs } = limits
  signal?.throwIfAborted()
  const action = requestWords(request)
  const controller = new AbortController()
  const onAbort = (): void => controller.abort(signal?.reason)
  const onTimeout = (): void =>
    controller.abort(new KubeError('Timeout', `${action}: no answer within ${timeoutMs} ms`))
  const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs)
  signal?.addEventListener('abort', onAbort, { once: true })
  // A fetch that does not look at its signal must not keep the caller waiting.
  const givenUp = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true })
  })
  try {
    return await Promise.race([whole(target, request, controller.signal), givenUp])
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : connectionError(error, action)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

async function whole(target: FetchTarget, request: Http2Request, signal: AbortSignal): Promise<RawResponse> {
  const { status, headers, body } = await fetchOpen(target, request, signal)
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return { status, headers, bytes: Buffer.concat(chunks) }
}

/** Resolves with the headers. Afterwards only `signal` ends it. */
export async function fetchOpen(
  { fetch, origin }: FetchTarget,
  request: Http2Request,
  signal: AbortSignal,
): Promise<OpenResponse> {
  const { method, path, body } = request
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    for (const one of [value].flat()) headers.append(name, one)
  try {
    // An API server does not redirect. Following a redirect would send the credentials to another host.
    const init: RequestInit = { method, headers, signal, redirect: 'manual', ...(body === undefined ? {} : { body }) }
    const response = await fetch(`${origin}${path}`, init)
    return { status: response.status, headers: Object.fromEntries(response.headers), body: bytesOf(response) }
  } catch (error) {
    throw lost(error)
  }
}

async function* bytesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  if (!body) return
  try {
    yield* body as unknown as AsyncIterable<Uint8Array> // Node's stream is one; the web's type does not say so
  } catch (error) {
    throw lost(error)
  }
}

/** Fetch tells a lost connection as a TypeError with the reason as its cause. */
function lost(error: unknown): unknown {
  if (!(error instanceof TypeError)) return error
  return error.cause instanceof Error ? error.cause : new Error(error.message, { cause: error })
}
