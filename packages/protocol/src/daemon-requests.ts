import type * as z from 'zod'
import { anySignal } from './any-signal.js'
import { CorralError } from './corral-error.js'
import { readLines } from './read-lines.js'
import { boundedText, failureOf, wrapFailure } from './response-failure.js'

/** The part of `fetch` a client needs: one request by URL, one response. */
export type Fetch = (url: string, init?: RequestInit) => Promise<Response>

export interface DaemonCallOptions {
  signal?: AbortSignal | undefined
  /** Bounds a call with a short answer. 30 s without it; streams are bounded by `signal` alone. */
  timeoutMs?: number | undefined
}

export type BytesIn = string | Uint8Array | AsyncIterable<Uint8Array>

export const defaultTimeoutMs = 30_000

/** Requests to the daemon of one sandbox: bounded in time and length, their failures with codes. */
export class DaemonRequests {
  readonly #fetch: Fetch
  readonly #baseUrl: string

  constructor(options: { fetch: Fetch; baseUrl?: string }) {
    this.#fetch = options.fetch
    this.#baseUrl = (options.baseUrl ?? 'http://sandbox').replace(/\/+$/, '')
  }

  /** Sends bytes; the answer is read and left. */
  async send(method: string, path: string, data: BytesIn, options: DaemonCallOptions): Promise<void> {
    let refusal: CorralError | undefined
    const onRefused = (reason: CorralError): void => {
      refusal = reason
    }
    const body = typeof data === 'string' || data instanceof Uint8Array ? data : streamOf(data, onRefused)
    const init = { body, duplex: 'half', headers: { 'content-type': 'application/octet-stream' } } as const
    const response = await this.open(method, path, options, init).catch((error: unknown) => {
      throw refusal ?? error
    })
    await boundedText(response, 64 * 1024)
  }

  /** Asks for a short answer and parses it; `check` refuses by its headers. */
  async json<T>(
    method: string,
    path: string,
    schema: z.ZodType<T>,
    options: DaemonCallOptions,
    body?: unknown,
    check: (response: Response) => void = () => {},
  ): Promise<T> {
    const init =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const response = await this.open(method, path, { timeoutMs: defaultTimeoutMs, ...options }, init)
    try {
      check(response)
    } catch (error) {
      await response.body?.cancel()
      throw error
    }
    const text = await boundedText(response, 32 * 1024 * 1024)
    try {
      return schema.parse(text === '' ? undefined : JSON.parse(text))
    } catch (cause) {
      throw new CorralError('ProtocolViolation', `the daemon's answer to ${method} ${path} is not understood`, {
        cause,
      })
    }
  }

  /** The answer as it is; a failure is a `CorralError` with the daemon's code. */
  async open(method: string, path: string, options: DaemonCallOptions, init: RequestInit = {}): Promise<Response> {
    const signals = [
      options.signal,
      options.timeoutMs === undefined ? undefined : AbortSignal.timeout(options.timeoutMs),
    ]
    const present = signals.filter((signal) => signal !== undefined)
    let response: Response
    try {
      const signal = present.length > 0 ? { signal: anySignal(present) } : {}
      // A redirect would take the request, and what authorizes it, wherever the sandbox wants.
      response = await this.#fetch(this.#baseUrl + path, { ...init, method, redirect: 'manual', ...signal })
    } catch (cause) {
      throw wrapFailure(cause, options.signal)
    }
    if (!response.ok) throw await failureOf(response, `${method} ${path}`)
    return response
  }
}

/** Lines of JSON as they arrive. */
export async function* parsedLines<T>(response: Response, schema: z.ZodType<T>): AsyncIterable<T> {
  try {
    for await (const line of readLines(response, () => {})) {
      const parsed = schema.safeParse(parseJson(line))
      if (!parsed.success) throw new CorralError('ProtocolViolation', 'the daemon sent a line that is not understood')
      yield parsed.data
    }
  } catch (cause) {
    throw wrapFailure(cause, undefined)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // no schema takes it
  }
}

/** The bytes of an answer as they arrive. */
export async function* bodyChunks(response: Response): AsyncIterable<Uint8Array> {
  if (!response.body) return
  try {
    for await (const chunk of response.body) yield chunk
  } catch (cause) {
    throw wrapFailure(cause, undefined)
  }
}

function describe(value: unknown): string {
  return value === null || value === undefined ? String(value) : `of type ${typeof value}`
}

/** `onRefused` is told of a chunk that is no data: the way there reports it only as a broken connection. */
function streamOf(
  chunks: AsyncIterable<Uint8Array>,
  onRefused: (reason: CorralError) => void,
): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await iterator.next()
      if (next.done) return controller.close()
      const chunk: unknown = next.value
      if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
        const refusal = new CorralError('Invalid', `a piece of the data is ${describe(chunk)}, neither bytes nor text`)
        onRefused(refusal)
        await iterator.return?.()
        throw refusal
      }
      controller.enqueue(typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk)
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}
