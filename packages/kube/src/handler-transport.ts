import type { ApiBody, ApiConnection, ApiHandler, ApiRequest, ApiResponse, ApiUser } from '@corral/ports'
import { withDeadline } from './deadline.js'
import { InProcessEvents } from './in-process-events.js'
import type { KubeTransport, TransportRequest, TransportResponse } from './kube-transport.js'
import { requestWords } from './request-words.js'
import { parseRetryAfterMs, responseError } from './response-error.js'

const noQuery = new URLSearchParams()

/** Talks to an API server in the same process. Objects are shared, frozen, and never turned into JSON. */
export function handlerTransport(handler: ApiHandler, user: ApiUser, userAgent = 'corral'): KubeTransport {
  const toApi = (request: TransportRequest, signal = request.signal): ApiRequest => {
    const api: { -readonly [Key in keyof ApiRequest]: ApiRequest[Key] } = {
      method: request.method,
      path: request.path,
      query: request.query ?? noQuery,
      headers: { 'user-agent': userAgent, accept: 'application/json', 'content-type': request.contentType },
      user,
    }
    if (request.body !== undefined) api.body = request.body
    if (signal) api.signal = signal
    return api
  }

  return {
    inProcess: true,

    async call(request) {
      if (request.timeoutMs === undefined) {
        request.signal?.throwIfAborted()
        const response = await handler.handle(toApi(request))
        return sharedResponse(response) ?? toResponse(response)
      }
      return withDeadline(request, async (signal) => toResponse(await handler.handle(toApi(request, signal))))
    },

    async watch(request) {
      const response = await handler.handle(toApi(request))
      if (response.body.type === 'watch') return new InProcessEvents(response.body.frames, request.signal)
      throw responseError(await toResponse(response), `watch ${request.path}`)
    },

    async stream(request) {
      const response = await handler.handle(toApi(request))
      const { body } = response
      if (response.status < 300 && body.type === 'stream') return untilAborted(body.chunks, request.signal)
      if (response.status < 300 && body.type === 'bytes') return once(body.bytes)
      if (response.status < 300 && body.type === 'empty') return once()
      throw responseError(await toResponse(response), requestWords(request))
    },

    async connect(request) {
      const connection = await withDeadline(request, async (signal) => {
        const opened = await handler.connect(toApi(request, signal))
        // The caller already has its error, so the stream is ended here.
        if (signal?.aborted && 'type' in opened) endConnection(opened, signal.reason)
        return opened
      })
      if ('type' in connection) return endOnAbort(connection, request.signal)
      throw responseError(await toResponse(connection), `connect ${request.path}`)
    },

    async close() {},
  }
}

/** What most answers are: an object, handed on without waiting for anything. */
function sharedResponse({ status, headers, body }: ApiResponse): TransportResponse | undefined {
  return body.type === 'object' && headers['retry-after'] === undefined ? { status, body: body.value } : undefined
}

async function toResponse({ status, headers, body }: ApiResponse): Promise<TransportResponse> {
  const retryAfterMs = parseRetryAfterMs(headers['retry-after'], new Date())
  const value = await readBody(body, headers['content-type'])
  return retryAfterMs === undefined ? { status, body: value } : { status, body: value, retryAfterMs }
}

async function readBody(body: ApiBody, contentType: string | undefined): Promise<unknown> {
  switch (body.type) {
    case 'object':
      return body.value
    case 'empty':
    case 'watch':
      return undefined
    case 'bytes':
      return parseBytes(Buffer.from(body.bytes), contentType)
    case 'stream': {
      const chunks: Uint8Array[] = []
      for await (const chunk of body.chunks) chunks.push(chunk)
      return parseBytes(Buffer.concat(chunks), contentType)
    }
  }
}

function parseBytes(bytes: Buffer, contentType: string | undefined): unknown {
  if (bytes.length === 0) return undefined
  const text = bytes.toString('utf8')
  return contentType?.startsWith('application/json') ? JSON.parse(text) : text
}

/** Ends as soon as `signal` aborts, even while the server has nothing to say; the server sees the same signal. */
async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncGenerator<T> {
  const values = source[Symbol.asyncIterator]()
  let wake = () => {}
  const abort = () => wake()
  signal?.addEventListener('abort', abort, { once: true })
  const next = () =>
    new Promise<IteratorResult<T> | undefined>((resolve, reject) => {
      wake = () => resolve(undefined)
      values.next().then(resolve, reject)
    })
  try {
    while (!signal?.aborted) {
      const result = await next()
      if (!result || result.done) return
      yield result.value
    }
  } finally {
    signal?.removeEventListener('abort', abort)
    // Not awaited: a source that waits for its next value would hold us up. No caller is left to receive its failure.
    void values.return?.()?.catch(() => {})
  }
}

async function* once(bytes?: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes?.length) yield bytes
}

/** The signal keeps its meaning after the connection stands: abort ends the process or drops the stream. */
function endOnAbort(connection: ApiConnection, signal: AbortSignal | undefined): ApiConnection {
  if (!signal) return connection
  const end = () => endConnection(connection, signal.reason)
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  if (connection.type === 'process') void connection.process.exited.then(() => signal.removeEventListener('abort', end))
  return connection
}

function endConnection(connection: ApiConnection, reason: unknown): void {
  if (connection.type === 'process') connection.process.kill()
  else connection.stream.destroy(reason instanceof Error ? reason : new Error('aborted', { cause: reason }))
}
