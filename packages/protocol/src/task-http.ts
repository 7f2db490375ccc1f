import type * as z from 'zod'
import { anySignal } from './any-signal.js'
import { CorralError } from './corral-error.js'
import type { Fetch } from './daemon-client.js'
import { type ConnectionCheck, connectionCheckSchema } from './platform-api.js'
import { readLines } from './read-lines.js'
import { boundedText, failureOf, wrapFailure } from './response-failure.js'
import type { PatchSettingsRequest } from './settings-api.js'
import type { TaskEvent } from './task-events.js'
import { parseEvent, parseJson, pathOf } from './task-wire.js'

export interface TaskCallOptions {
  signal?: AbortSignal | undefined
  /** Bounds a call with a short answer. 30 s without it; streams are bounded by `signal` alone. */
  timeoutMs?: number | undefined
}

const defaultTimeoutMs = 30_000
const maxAnswerBytes = 64 * 1024 * 1024
/** The server sends something every 15 s: a stream that is silent for so long is no longer there. */
const silenceMs = 60_000

/** Requests to the task API, with its credentials, limits and failures; what they ask for is `TasksClient`'s. */
export class TaskHttp {
  readonly #baseUrl: string
  readonly #token: string | undefined
  readonly #fetch: Fetch

  constructor(options: { baseUrl: string; token?: string; fetch?: Fetch }) {
    this.#baseUrl = options.baseUrl.replace(/\/+$/, '')
    this.#token = options.token
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init))
  }

  async *checks(
    path: string,
    { signal, settings }: { signal?: AbortSignal; settings?: PatchSettingsRequest },
  ): AsyncGenerator<ConnectionCheck, void> {
    const init = { ...(settings ? { body: JSON.stringify({ settings }) } : {}), ...(signal ? { signal } : {}) }
    const response = await this.#request('POST', path, init, signal)
    try {
      for await (const line of readLines(response)) if (line !== '') yield connectionCheckSchema.parse(parseJson(line))
    } catch (error) {
      throw this.#explained(error, signal)
    }
  }

  async *events(
    id: string,
    after: number,
    signal: AbortSignal | undefined,
    query = '',
  ): AsyncGenerator<TaskEvent, void> {
    const silent = new AbortController()
    const either = signal ? anySignal([signal, silent.signal]) : silent.signal
    const timedOut = (): void => silent.abort(new DOMException('the event stream fell silent', 'TimeoutError'))
    let timer = setTimeout(timedOut, silenceMs)
    try {
      const response = await this.#request(
        'GET',
        `${pathOf(id)}/events?after=${after}${query}`,
        { signal: either },
        signal,
      )
      for await (const line of readLines(response, () => {
        clearTimeout(timer)
        timer = setTimeout(timedOut, silenceMs)
      })) {
        if (line !== '') yield parseEvent(line)
      }
    } catch (error) {
      throw this.#explained(silent.signal.aborted ? silent.signal.reason : error, signal)
    } finally {
      clearTimeout(timer)
      silent.abort() // lets go of the connection when the reader leaves early
    }
  }

  async *bytes(path: string, signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
    const response = await this.#request('GET', path, signal ? { signal } : {}, signal)
    const reader = response.body?.getReader()
    if (!reader) return
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
    } catch (error) {
      throw wrapFailure(error, signal)
    } finally {
      await reader.cancel().catch(() => undefined)
    }
  }

  async json<T>(
    method: string,
    path: string,
    schema: z.ZodType<T>,
    { signal, timeoutMs = defaultTimeoutMs }: TaskCallOptions,
    init: RequestInit = {},
  ): Promise<T> {
    const limit = AbortSignal.timeout(timeoutMs)
    const either = signal ? anySignal([signal, limit]) : limit
    const response = await this.#request(method, path, { ...init, signal: either }, signal)
    const text = await boundedText(response, maxAnswerBytes).catch((error: unknown) => {
      throw this.#explained(error, signal)
    })
    const answer = schema.safeParse(parseJson(text))
    if (answer.success) return answer.data
    throw new CorralError('ProtocolViolation', `${method} ${path} answered something that is not in the contract`, {
      cause: answer.error,
    })
  }

  /** A call whose answer says nothing but that it is done. */
  async nothing(
    method: string,
    path: string,
    { signal, timeoutMs = defaultTimeoutMs }: TaskCallOptions,
    init: RequestInit = {},
  ): Promise<void> {
    const limit = AbortSignal.timeout(timeoutMs)
    const either = signal ? anySignal([signal, limit]) : limit
    const response = await this.#request(method, path, { ...init, signal: either }, signal)
    await response.body?.cancel()
  }

  /** `caller` is the signal of the caller alone: a time limit of ours is another failure than its abort. */
  async #request(method: string, path: string, init: RequestInit, caller?: AbortSignal): Promise<Response> {
    let response: Response
    try {
      response = await this.#fetch(`${this.#baseUrl}${path}`, {
        method,
        ...init,
        headers: {
          accept: 'application/x-ndjson, application/json',
          ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
          ...(init.body ? { 'content-type': 'application/json' } : {}),
          ...(init.headers as Record<string, string> | undefined),
        },
      })
    } catch (error) {
      throw this.#explained(error, caller)
    }
    if (response.ok) return response
    throw await failureOf(response, `${method} ${path}`)
  }

  /** A lost connection is one to the platform: says which. */
  #explained(cause: unknown, signal: AbortSignal | undefined): CorralError {
    const failure = signal?.aborted
      ? new CorralError('Aborted', 'the call was aborted', { cause })
      : wrapFailure(cause, undefined)
    if (failure.code !== 'ConnectionLost') return failure
    return new CorralError('ConnectionLost', `the platform at ${this.#baseUrl} does not answer`, {
      cause,
      details: { platform: this.#baseUrl },
      hint: 'Check that the platform runs and that this is its address.',
    })
  }
}
