import { setMaxListeners } from 'node:events'
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ByteStream } from '@corral/ports'
import { CorralError, type Fetch } from '@corral/protocol'
import { ByteStreamSocket } from './byte-stream-socket.js'
import { longestMs } from './time-limit.js'

/** Opens one connection to the sandbox's port. */
export type Dial = (signal: AbortSignal) => Promise<ByteStream>

export interface StreamFetch {
  readonly fetch: Fetch
  /** Drops all connections; requests under way fail. */
  close(): void
}

const dialTimeoutMs = 30_000

/**
 * HTTP/1.1 over any byte streams: connections are kept and used again, one request at a time on each. `dialMs` is what `dial`
 * allows itself, where that is long.
 */
export function streamFetch(dial: Dial, dialMs = 0): StreamFetch {
  const closed = new AbortController()
  // Every request under way listens to it: Node would warn of a leak at the eleventh.
  setMaxListeners(0, closed.signal)
  const withinMs = Math.min(longestMs, Math.max(dialTimeoutMs, 2 * dialMs))
  const agent = new DialingAgent((signal) => dial(AbortSignal.any([signal, closed.signal])), withinMs)
  return {
    fetch: (url, init = {}) => send(agent, url, init, closed.signal),
    close: () => {
      closed.abort(new Error('the connection to the sandbox was closed'))
      agent.destroy()
    },
  }
}

class DialingAgent extends Agent {
  readonly #dial: Dial
  readonly #withinMs: number

  constructor(dial: Dial, withinMs: number) {
    super({ keepAlive: true, maxSockets: 64, maxFreeSockets: 4 })
    this.#dial = dial
    this.#withinMs = withinMs
  }

  override createConnection(
    _options: unknown,
    onCreated?: (error: Error | null, socket: ByteStreamSocket) => void,
  ): undefined {
    // Not a timeout signal: it would go on to count, and end the connection, once that stands.
    const slow = new AbortController()
    const timer = setTimeout(() => slow.abort(new Error('the sandbox could not be reached in time')), this.#withinMs)
    this.#dial(slow.signal)
      .finally(() => clearTimeout(timer))
      .then(
        (stream) => {
          const socket = new ByteStreamSocket(stream)
          // An answer may come before the body is through. Node then stops listening to the connection, and a write that
          // fails after it would end the program.
          socket.on('error', () => {})
          onCreated?.(null, socket)
        },
        // With an error the second argument is not looked at.
        (error: Error) => onCreated?.(error, undefined as unknown as ByteStreamSocket),
      )
    return undefined
  }
}

async function send(agent: Agent, url: string, init: RequestInit, closed: AbortSignal): Promise<Response> {
  const signal = init.signal ? AbortSignal.any([init.signal, closed]) : closed
  signal.throwIfAborted()
  try {
    return await sendOnce(agent, url, init, signal)
  } catch (error) {
    // A kept connection may have ended just as it was picked. A request that may be repeated is sent again on a new one.
    if (!(error instanceof StaleConnection) || !isRepeatable(init)) throw unwrap(error)
    return await sendOnce(agent, url, init, signal).catch((again: unknown) => {
      throw unwrap(again)
    })
  }
}

class StaleConnection extends Error {}
const unwrap = (error: unknown): unknown => (error instanceof StaleConnection ? error.cause : error)

async function sendOnce(agent: Agent, url: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
  const { body, type } = plainBody(init.body)
  const headers = new Headers(init.headers)
  if (type && !headers.has('content-type')) headers.set('content-type', type)
  const request = httpRequest(url, {
    agent,
    method: init.method ?? 'GET',
    headers: Object.fromEntries(headers),
    signal,
  })
  let ofSource: Error | undefined
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', (cause) => {
      if (ofSource) return reject(ofSource)
      reject(
        request.reusedSocket && !signal.aborted ? new StaleConnection('a kept connection failed', { cause }) : cause,
      )
    })
  })
  // An answer may come before the body is through, and a body that fails destroys the request: `answered` tells.
  writeBody(request, body, (failure) => {
    ofSource = new CorralError('Aborted', `what was to be sent failed: ${messageOf(failure)}`, { cause: failure })
    // `pipeline` leaves a request alone whose source is an iterable: the call would wait for an answer for ever.
    request.destroy(ofSource)
  }).catch(() => {})
  return toResponse(await answered, init.method)
}

type PlainBody = string | Uint8Array | ReadableStream | undefined

/** Forms, blobs and buffers as the stream that fetch would send of them, with its content type. */
function plainBody(body: RequestInit['body']): { body: PlainBody; type?: string | undefined } {
  if (body === undefined || body === null) return { body: undefined }
  if (typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream) return { body }
  const sent = new Response(body)
  return { body: sent.body ?? undefined, type: sent.headers.get('content-type') ?? undefined }
}

async function writeBody(
  request: ClientRequest,
  body: PlainBody,
  onSourceFailure: (failure: unknown) => void,
): Promise<void> {
  if (body === undefined) request.end()
  else if (body instanceof ReadableStream) await pipeline(watched(body, onSourceFailure), request)
  else {
    if (!request.hasHeader('content-length')) request.setHeader('content-length', Buffer.byteLength(body))
    request.end(body)
  }
}

/** Tells when the source itself fails: on the connection it looks like one that broke. */
async function* watched(
  body: ReadableStream,
  onFailure: (failure: unknown) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    // Node's stream is iterable; the web's type does not say so.
    for await (const chunk of body as unknown as AsyncIterable<unknown>) {
      // Node's request refuses any other value, and the call would then wait for its answer for ever.
      if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array))
        throw new TypeError(`a piece of type ${typeof chunk} is neither bytes nor text`)
      yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    }
  } catch (error) {
    onFailure(error)
    throw error
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Answers that `Response` takes no body for. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

function toResponse(message: IncomingMessage, method: string | undefined): Response {
  const headers = new Headers()
  for (let i = 0; i + 1 < message.rawHeaders.length; i += 2) {
    headers.append(message.rawHeaders[i]!, message.rawHeaders[i + 1]!)
  }
  const status = message.statusCode ?? 502
  const hasBody = method !== 'HEAD' && !bodiless.has(status)
  if (!hasBody) message.resume()
  // Node's and the global's stream types differ by name only.
  const body = hasBody ? (Readable.toWeb(message) as ReadableStream<Uint8Array>) : null
  return new Response(body, { status, headers })
}

function isRepeatable(init: RequestInit): boolean {
  const isIdempotent = ['GET', 'HEAD', 'PUT', 'DELETE'].includes(init.method ?? 'GET')
  return isIdempotent && !(init.body instanceof ReadableStream)
}
