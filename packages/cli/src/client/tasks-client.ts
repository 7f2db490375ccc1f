import {
  type CreateTaskRequest,
  type CreateTaskResponse,
  createTaskResponseSchema,
  errorBodySchema,
  type TaskEvent,
  type TaskList,
  type TaskView,
  taskListSchema,
  taskViewSchema,
} from '@corral/protocol'
import { isFinalPhase } from '@corral/resources'
import { CliError } from '../cli-error.js'

export interface PlatformAddress {
  url: string
  token: string
}

/** The task API over HTTP. Failures are `CliError`s with the server's own words and hint. */
export class TasksClient {
  constructor(readonly address: PlatformAddress) {}

  async create(
    request: CreateTaskRequest,
    options: { idempotencyKey?: string; signal?: AbortSignal } = {},
  ): Promise<CreateTaskResponse> {
    const headers = options.idempotencyKey ? { 'idempotency-key': options.idempotencyKey } : {}
    const response = await this.#call('POST', '/tasks', {
      body: JSON.stringify(request),
      headers,
      ...signalOf(options),
    })
    return createTaskResponseSchema.parse(await response.json())
  }

  async get(id: string): Promise<TaskView> {
    return taskViewSchema.parse(await (await this.#call('GET', `/tasks/${encodeURIComponent(id)}`)).json())
  }

  async list(options: { status?: string; limit?: number; after?: string } = {}): Promise<TaskList> {
    const query = new URLSearchParams(
      Object.entries(options).map(([name, value]): [string, string] => [name, String(value)]),
    )
    return taskListSchema.parse(await (await this.#call('GET', `/tasks?${query}`)).json())
  }

  async cancel(id: string): Promise<TaskView> {
    return taskViewSchema.parse(await (await this.#call('POST', `/tasks/${encodeURIComponent(id)}/cancel`)).json())
  }

  async retry(id: string): Promise<CreateTaskResponse> {
    return createTaskResponseSchema.parse(
      await (await this.#call('POST', `/tasks/${encodeURIComponent(id)}/retry`)).json(),
    )
  }

  /** Raw output (`logs`) or patch (`diff`) as it comes. */
  async *text(id: string, what: 'logs' | 'diff'): AsyncIterable<Uint8Array> {
    const response = await this.#call('GET', `/tasks/${encodeURIComponent(id)}/${what}`)
    if (response.body) yield* response.body as unknown as AsyncIterable<Uint8Array>
  }

  /**
   * Events after `after`, live, until the last one, or all there are of a task that ended without it. A broken line is
   * opened again where it broke, for a minute.
   */
  async *events(id: string, options: { after?: number; signal?: AbortSignal } = {}): AsyncIterable<TaskEvent> {
    let after = options.after ?? 0
    let failingSince: number | undefined
    for (let attempt = 1; ; attempt++) {
      try {
        const isOver = attempt > 1 && isFinalPhase((await this.get(id)).status)
        const response = await this.#call(
          'GET',
          `/tasks/${encodeURIComponent(id)}/events?after=${after}`,
          signalOf(options),
        )
        for await (const event of ndjson(response)) {
          failingSince = undefined
          after = event.sequence
          yield event
          if (event.type === 'result') return
        }
        if (isOver) return
      } catch (error) {
        if (options.signal?.aborted || (error instanceof CliError && error.exitCode !== 3)) throw error
        failingSince ??= Date.now()
        if (Date.now() - failingSince > 60_000) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }

  async #call(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    let response: Response
    try {
      response = await fetch(`${this.address.url}${path}`, {
        method,
        ...init,
        headers: {
          authorization: `Bearer ${this.address.token}`,
          accept: 'application/x-ndjson, application/json',
          ...(init.body ? { 'content-type': 'application/json' } : {}),
          ...(init.headers as Record<string, string> | undefined),
        },
      })
    } catch (error) {
      if (init.signal?.aborted) throw error
      throw new CliError(`the platform at ${this.address.url} does not answer`, {
        hint: 'Start it with `corral up`, or point CORRAL_URL and CORRAL_TOKEN at a running one.',
        exitCode: 3,
        cause: error,
      })
    }
    if (response.ok) return response
    throw await failureOf(response)
  }
}

async function failureOf(response: Response): Promise<CliError> {
  const text = (await response.text()).slice(0, 16_384)
  try {
    const { error } = errorBodySchema.parse(JSON.parse(text))
    return new CliError(`${error.message} (${error.code})`, {
      ...(error.hint ? { hint: error.hint } : {}),
      exitCode: response.status >= 500 ? 3 : 2,
    })
  } catch {
    return new CliError(`the platform answered ${response.status}: ${text.slice(0, 200)}`, { exitCode: 3 })
  }
}

async function* ndjson(response: Response): AsyncIterable<TaskEvent> {
  const decoder = new TextDecoder()
  let pending = ''
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    pending += decoder.decode(chunk, { stream: true })
    const lines = pending.split('\n')
    pending = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as TaskEvent
  }
}

function signalOf(options: { signal?: AbortSignal }): { signal?: AbortSignal } {
  return options.signal ? { signal: options.signal } : {}
}
