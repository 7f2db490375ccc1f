import { constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2'
import { KubeError } from '@corral/resources'
import { requestWords } from '../request-words.js'
import { connectionError } from './connection-error.js'
import type { RawResponse } from './http-call.js'
import type { Http2Connections, Http2Request } from './http2-connections.js'

interface Limits {
  signal?: AbortSignal | undefined
  /** For the whole response of a call; for the headers of a stream. */
  timeoutMs?: number | undefined
}

/** A response whose body is still to come. Reading it to its end or leaving the loop frees the stream. */
export interface OpenResponse {
  readonly status: number
  readonly headers: RawResponse['headers']
  readonly body: AsyncIterable<Uint8Array>
}

/** One request and its whole response. Undefined where the server does not speak HTTP/2. */
export async function http2Call(
  connections: Http2Connections,
  request: Http2Request,
  limits: Limits,
): Promise<RawResponse | undefined> {
  const chunks: Buffer[] = []
  return exchange(connections, request, limits, (stream, headers, settle) => {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.once('end', () => {
      // A reset ends the stream too; the error that comes with it settles the call.
      if (stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted)
        settle({ ...statusOf(headers), bytes: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks) })
    })
  })
}

/** Resolves with the headers. Afterwards only `signal` ends it. */
export async function http2Open(
  connections: Http2Connections,
  request: Http2Request,
  limits: Limits,
): Promise<OpenResponse | undefined> {
  return exchange(connections, request, limits, (stream, headers, settle) => {
    const abort = (): void => void stream.destroy()
    limits.signal?.addEventListener('abort', abort, { once: true })
    stream.once('close', () => limits.signal?.removeEventListener('abort', abort))
    settle({ ...statusOf(headers), body: stream })
  })
}

type Stream = NonNullable<Awaited<ReturnType<Http2Connections['request']>>>
type Headers = IncomingHttpHeaders & IncomingHttpStatusHeader

async function exchange<T>(
  connections: Http2Connections,
  request: Http2Request,
  { signal, timeoutMs }: Limits,
  onResponse: (stream: Stream, headers: Headers, settle: (value: T) => void) => void,
): Promise<T | undefined> {
  signal?.throwIfAborted()
  return new Promise<T | undefined>((resolve, reject) => {
    let stream: Stream | undefined
    let isDone = false
    const finish = (settle: () => void): void => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      settle()
    }
    const giveUp = (reason: unknown): void => {
      finish(() => reject(reason))
      stream?.close(constants.NGHTTP2_CANCEL)
    }
    const onAbort = (): void => giveUp(signal?.reason)
    const onTimeout = (): void =>
      giveUp(new KubeError('Timeout', `${requestWords(request)}: no answer within ${timeoutMs} ms`))
    const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs)
    signal?.addEventListener('abort', onAbort, { once: true })
    const fail = (error: unknown): void => finish(() => reject(connectionError(error, requestWords(request))))

    connections.request(request).then((opened) => {
      if (!opened) return finish(() => resolve(undefined))
      stream = opened
      opened.on('error', fail)
      opened.once('close', () => fail(new Error('the connection closed before the answer was complete')))
      // Given up while the connection was being made.
      if (isDone) return opened.close(constants.NGHTTP2_CANCEL)
      opened.once('response', (headers) => onResponse(opened, headers, (value) => finish(() => resolve(value))))
    }, fail)
  })
}

function statusOf(headers: Headers): { status: number; headers: RawResponse['headers'] } {
  return { status: headers[':status'] ?? 0, headers }
}
