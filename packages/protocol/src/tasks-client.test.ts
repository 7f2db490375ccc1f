import { describe, expect, it } from 'vitest'
import { errorResponse } from './corral-error.js'
import type { Fetch } from './daemon-client.js'
import type { TaskEvent } from './task-events.js'
import type { TaskView } from './task-view.js'
import { TasksClient } from './tasks-client.js'

const view: TaskView = {
  id: 'task-b',
  status: 'SUCCEEDED',
  repo: '/r',
  task: 't',
  agent: { name: 'claude' },
  timeout_seconds: 60,
  created_at: '2026-01-01T00:00:00Z',
}
const time = '2026-01-01T00:00:00.000Z'
const output = (sequence: number): TaskEvent => ({ sequence, time, type: 'output', stream: 'stdout', text: 'ä' })
const result = (sequence: number, task?: TaskView): TaskEvent => ({
  sequence,
  time,
  type: 'result',
  status: 'SUCCEEDED',
  ...(task ? { task } : {}),
})

/** A body in pieces of one byte, so that lines and characters arrive torn; with `breaks` it ends as a lost connection. */
function lines(events: readonly unknown[], { breaks = false } = {}): Response {
  const bytes = new TextEncoder().encode(events.map((event) => `${JSON.stringify(event)}\n`).join('\n'))
  let next = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (next < bytes.length) controller.enqueue(bytes.slice(next, ++next))
      else if (breaks) controller.error(new TypeError('terminated'))
      else controller.close()
    },
  })
  return new Response(body)
}

/** A server that answers in the order of the script and keeps what it was asked. */
function scripted(
  answers: (() => Response | Promise<Response>)[],
  { reconnectForMs = 0 } = {},
): { client: TasksClient; asked: string[] } {
  const asked: string[] = []
  const serve: Fetch = async (url, init) => {
    asked.push(`${init?.method} ${url}`)
    const answer = answers.shift()
    if (!answer) throw new Error(`nothing scripted for ${init?.method} ${url}`)
    return answer()
  }
  return { client: new TasksClient({ baseUrl: 'http://platform/', fetch: serve, reconnectForMs }), asked }
}

const refused = (): Promise<Response> => Promise.reject(new TypeError('fetch failed'))

async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of all) found.push(one)
  return found
}

describe('events', () => {
  it('ends with the last event, and the task at its end is in it', async () => {
    const { client, asked } = scripted([() => lines([output(1), result(2, view)])])
    expect(await client.wait('task-b')).toEqual({ ...view, last_event_sequence: 2 })
    expect(asked).toEqual(['GET http://platform/tasks/task-b/events?after=0'])
  })

  it('a result of an earlier release has no task in it: then it is asked for once', async () => {
    const { client, asked } = scripted([() => lines([result(1)]), () => Response.json(view)])
    expect(await client.wait('task-b')).toEqual(view)
    expect(asked).toEqual(['GET http://platform/tasks/task-b/events?after=0', 'GET http://platform/tasks/task-b'])
  })

  it.each<{ how: string; first: () => Response }>([
    { how: 'broke', first: () => lines([output(1), output(2)], { breaks: true }) },
    { how: 'was ended by a server that stopped', first: () => lines([output(1), output(2)]) },
  ])('a stream that $how is opened again behind the last event', async ({ first }) => {
    const running = (): Response => Response.json({ ...view, status: 'RUNNING' })
    const { client, asked } = scripted([first, running, () => lines([result(3)])], { reconnectForMs: 60_000 })
    expect((await collect(client.events('task-b'))).map(({ sequence }) => sequence)).toEqual([1, 2, 3])
    expect(asked).toEqual([
      'GET http://platform/tasks/task-b/events?after=0',
      'GET http://platform/tasks/task-b',
      'GET http://platform/tasks/task-b/events?after=2',
    ])
  })

  it('a task that ended without its last event ends its readers', async () => {
    const { client } = scripted([() => lines([output(1)]), () => Response.json(view), () => lines([])])
    expect(await collect(client.events('task-b'))).toHaveLength(1)
  })

  it('a platform that stays away is said to the reader, with its address', async () => {
    const { client } = scripted([refused])
    await expect(collect(client.events('task-b'))).rejects.toMatchObject({
      code: 'ConnectionLost',
      message: 'the platform at http://platform does not answer',
      hint: expect.stringContaining('address'),
    })
  })

  it('what repeating cannot cure is not repeated', async () => {
    const { client, asked } = scripted([() => errorResponse('TaskNotFound', 'there is no task "x"')])
    await expect(collect(client.events('x'))).rejects.toMatchObject({ code: 'TaskNotFound' })
    expect(asked).toHaveLength(1)
  })

  it('a reader that gives up is told so and asks no more', async () => {
    const abort = new AbortController()
    const { client, asked } = scripted([() => lines([output(1)], { breaks: true })])
    const reading = (async () => {
      for await (const _ of client.events('task-b', { signal: abort.signal })) abort.abort()
    })()
    await expect(reading).rejects.toMatchObject({ code: 'Aborted' })
    expect(asked).toHaveLength(1)
  })

  it('passes on events of types it does not know, and refuses what is no event', async () => {
    const newer = { sequence: 1, time, type: 'plan', steps: [] }
    const known = scripted([() => lines([newer, result(2)])])
    expect(await collect(known.client.events('task-b'))).toEqual([newer, result(2)])
    const { client } = scripted([() => lines([{ sequence: 'one' }])])
    await expect(collect(client.events('task-b'))).rejects.toMatchObject({ code: 'ProtocolViolation' })
  })
})

describe('calls', () => {
  it('a refusal carries the code, words and hint of the server', async () => {
    const { client } = scripted([() => errorResponse('UnknownAgent', 'there is no agent "x"', 'Use one of: claude.')])
    await expect(client.create({ repo: '/r', task: 't' })).rejects.toMatchObject({
      code: 'UnknownAgent',
      message: 'there is no agent "x"',
      hint: 'Use one of: claude.',
      retryable: false,
      details: { status: 422 },
    })
  })

  it('an answer outside the contract is a violation of it', async () => {
    const { client } = scripted([() => Response.json({ id: 7 }), () => new Response('<html>')])
    await expect(client.get('task-b')).rejects.toMatchObject({ code: 'ProtocolViolation' })
    await expect(client.get('task-b')).rejects.toMatchObject({ code: 'ProtocolViolation' })
  })

  it('a call has a time limit of its own', async () => {
    const silent: Fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        if (init?.signal?.aborted) reject(init.signal.reason)
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
    const client = new TasksClient({ baseUrl: 'http://platform', fetch: silent })
    await expect(client.get('task-b', { timeoutMs: 5 })).rejects.toMatchObject({ code: 'Timeout' })
    await expect(client.get('task-b', { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'Aborted' })
  })

  it('sends its token, a key for repeats, and ids that are no paths', async () => {
    const seen: { url: string; headers: unknown }[] = []
    const client = new TasksClient({
      baseUrl: 'http://platform',
      token: 'secret',
      fetch: async (url, init) => {
        seen.push({ url, headers: init?.headers })
        return Response.json(init?.method === 'POST' ? { id: 'task-b', status: 'QUEUED' } : view)
      },
    })
    await client.create({ repo: '/r', task: 't' }, { idempotencyKey: 'once' })
    await client.get('../admin')
    expect(seen).toMatchObject([
      { headers: { authorization: 'Bearer secret', 'idempotency-key': 'once', 'content-type': 'application/json' } },
      { url: 'http://platform/tasks/..%2Fadmin' },
    ])
  })

  it('streams logs and diff as they are', async () => {
    const { client, asked } = scripted([() => new Response('raw'), () => new Response('patch')])
    expect(new TextDecoder().decode((await collect(client.logs('task-b')))[0])).toBe('raw')
    expect(new TextDecoder().decode((await collect(client.diff('task-b')))[0])).toBe('patch')
    expect(asked).toEqual(['GET http://platform/tasks/task-b/logs', 'GET http://platform/tasks/task-b/diff'])
  })
})
