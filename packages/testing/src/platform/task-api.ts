import {
  type CreateTaskRequest,
  isFinalPhase,
  type TaskEvent,
  type TaskPhase,
  type TaskView,
  taskEventSchema,
  taskViewSchema,
} from '@corral/protocol'
import { hangMs, type WaitOptions, waitUntil } from './wait-until.js'

export interface ApiAnswer {
  status: number
  headers: Headers
  text: string
  /** The body where it is JSON. */
  json: unknown
}

/** Calls of the task API as a test makes them: plain HTTP, answers checked against the wire schemas. */
export interface TaskApi {
  request(method: string, path: string, options?: RequestOptions): Promise<ApiAnswer>
  create(request: CreateTaskRequest, headers?: Record<string, string>): Promise<string>
  get(id: string): Promise<TaskView>
  /** Waits for a state of the task. */
  until(id: string, what: string, isSo: (task: TaskView) => boolean, options?: WaitOptions): Promise<TaskView>
  untilPhase(id: string, phase: TaskPhase, options?: WaitOptions): Promise<TaskView>
  untilEnded(id: string, options?: WaitOptions): Promise<TaskView>
  /** Creates a task and waits for its end. */
  run(request: CreateTaskRequest, options?: WaitOptions): Promise<TaskView>
  /** Reads events as they come; ends with the stream. */
  events(id: string, options?: EventOptions): AsyncGenerator<TaskEvent>
  allEvents(id: string, options?: EventOptions): Promise<TaskEvent[]>
}

export interface RequestOptions {
  body?: unknown
  /** Sent as it is, instead of `body` as JSON. */
  rawBody?: string
  headers?: Record<string, string>
  token?: string | null
}

export interface EventOptions {
  after?: number
  follow?: boolean
  format?: 'sse' | 'ndjson'
  /** Resumes the way a browser does. */
  lastEventId?: number
  signal?: AbortSignal
}

/** A client of the platform that `where` names at the time of each call: it survives restarts. */
export function taskApi(where: () => { url: string; token: string }): TaskApi {
  const request: TaskApi['request'] = async (method, path, options = {}) => {
    const { url, token } = where()
    const sentToken = options.token === undefined ? token : options.token
    const body = options.rawBody ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(sentToken === null ? {} : { authorization: `Bearer ${sentToken}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(hangMs),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parseJson(text) }
  }

  const get: TaskApi['get'] = async (id) => {
    const answer = await request('GET', `/tasks/${id}`)
    if (answer.status !== 200) throw new Error(`GET /tasks/${id}: ${answer.status} ${answer.text}`)
    return taskViewSchema.parse(answer.json)
  }

  const until: TaskApi['until'] = async (id, what, isSo, options) => {
    let last: TaskView | undefined
    try {
      return await waitUntil(
        `task ${id}: ${what}`,
        async () => {
          last = await get(id)
          return isSo(last) && last
        },
        options,
      )
    } catch (error) {
      throw new Error(`${(error as Error).message}; last seen: ${JSON.stringify(last)}`, { cause: error })
    }
  }

  const create: TaskApi['create'] = async (body, headers) => {
    const answer = await request('POST', '/tasks', { body, ...(headers ? { headers } : {}) })
    if (answer.status !== 201) throw new Error(`POST /tasks: ${answer.status} ${answer.text}`)
    return (answer.json as { id: string }).id
  }

  const untilEnded: TaskApi['untilEnded'] = (id, options) =>
    until(id, 'ended', (task) => isFinalPhase(task.status), options)

  const events: TaskApi['events'] = (id, options = {}) => readEvents(where(), id, options)

  return {
    request,
    create,
    get,
    until,
    untilPhase: (id, phase, options) => until(id, phase, (task) => task.status === phase, options),
    untilEnded,
    run: async (body, options) => untilEnded(await create(body), options),
    events,
    async allEvents(id, options) {
      const found: TaskEvent[] = []
      for await (const event of events(id, options)) found.push(event)
      return found
    },
  }
}

async function* readEvents(
  { url, token }: { url: string; token: string },
  id: string,
  { after, follow, format = 'ndjson', lastEventId, signal }: EventOptions,
): AsyncGenerator<TaskEvent> {
  const query = new URLSearchParams({
    ...(after === undefined ? {} : { after: String(after) }),
    ...(follow === undefined ? {} : { follow: String(follow) }),
  })
  const response = await fetch(`${url}/tasks/${id}/events?${query}`, {
    headers: {
      authorization: `Bearer ${token}`,
      accept: format === 'sse' ? 'text/event-stream' : 'application/x-ndjson',
      ...(lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }),
    },
    ...(signal ? { signal } : {}),
  })
  if (!response.ok || !response.body) throw new Error(`events of ${id}: ${response.status} ${await response.text()}`)
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body) {
    rest += decoder.decode(chunk, { stream: true })
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const json = format === 'sse' ? /^data: (.*)$/.exec(line)?.[1] : line.trim()
      if (json) yield taskEventSchema.parse(JSON.parse(json))
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Plain text is an answer too.
    return undefined
  }
}
