import { silentLogger } from '@corral/ports'
import { TaskError, type TaskService } from '@corral/tasks'
import { Registry } from 'prom-client'
import { beforeEach, describe, expect, it } from 'vitest'
import { createApp } from './app.js'

const view = {
  id: 'task-b',
  status: 'QUEUED',
  repo: '/r',
  task: 't',
  agent: { name: 'claude' },
  timeout_seconds: 1800,
  created_at: '2026-01-01T00:00:00Z',
} as const
let created: unknown[]
let app: ReturnType<typeof createApp>

beforeEach(() => {
  created = []
  const tasks: TaskService = {
    async create(request, options) {
      created.push({ request, options })
      return { task: view, isReplay: false }
    },
    async get(id) {
      if (id !== view.id) throw new TaskError('TaskNotFound', `there is no task "${id}"`)
      return view
    },
    list: async () => ({ tasks: [view] }),
    cancel: async () => {
      throw new TaskError('TaskFinished', 'it has ended')
    },
    retry: async (_, request) => {
      created.push({ retry: request })
      return { task: view, isReplay: false }
    },
    decide: async () => view,
    group: async (name) => ({ name, branch: 'b', tasks: [view] }),
    apply: async () => {
      throw new Error('no work tree')
    },
    pick: async () => ({ task: view, isReplay: false }),
    release: async () => view,
    answer: async () => view,
    message: async (id, message) => {
      created.push({ id, message })
      return { task: view, isReplay: false }
    },
    async remove(id, { force } = {}) {
      if (id !== view.id) throw new TaskError('TaskNotFound', `there is no task "${id}"`)
      if (!force) throw new TaskError('TaskNotFinished', 'it runs', { hint: 'Cancel it.' })
      return view
    },
    async events(_, { after }) {
      return (async function* () {
        for (const sequence of [1, 2, 3].filter((number) => number > after))
          yield {
            sequence,
            time: '2026-01-01T00:00:00.000Z',
            type: 'output' as const,
            stream: 'stdout' as const,
            text: `${sequence}`,
          }
      })()
    },
    logs: async () => chunks('raw'),
    diff: async (_, { path } = {}) => chunks(path ? `diff of ${path}` : 'diff'),
    files: async () => ({ files: [], additions: 0, deletions: 0, truncated: false }),
    file: async (_, { path, ref }) => ({ sizeBytes: 4, content: chunks(`${ref} ${path}`) }),
    artifacts: async () => [{ name: 'a.html', size_bytes: 4 }],
    artifact: async () => ({ sizeBytes: 4, content: chunks('kept') }),
  }
  app = createApp({
    tasks,
    token: 'secret',
    isReady: () => false,
    registry: new Registry(),
    version: '1.2.3',
    log: silentLogger,
  })
})

async function* chunks(text: string): AsyncIterable<Uint8Array> {
  yield new TextEncoder().encode(text)
}

const call = (path: string, init: RequestInit = {}): Promise<Response> =>
  Promise.resolve(
    app.request(path, {
      ...init,
      headers: { authorization: 'Bearer secret', 'content-type': 'application/json', ...init.headers },
    }),
  )
const post = (body: string, headers: Record<string, string> = {}): Promise<Response> =>
  call('/tasks', { method: 'POST', body, headers })

describe('POST /tasks', () => {
  it('S4-A1, S4-A2: takes repo and task, answers id and QUEUED', async () => {
    const response = await post('{"repo":"/r","task":"t","base_branch":"main","new_branch":"n"}', {
      'idempotency-key': 'k',
    })
    expect(response.status).toBe(201)
    expect(await response.json()).toEqual({ id: 'task-b', status: 'QUEUED' })
    expect(created).toEqual([
      { request: { repo: '/r', task: 't', base_branch: 'main', new_branch: 'n' }, options: { idempotencyKey: 'k' } },
    ])
  })

  it.each<[string, string, number, RegExp]>([
    ['is not JSON', '{', 400, /not valid JSON/],
    ['is empty', '', 400, /not valid JSON/],
    ['is not an object', '[]', 400, /body: must be an object/],
    ['has no repo', '{"task":"t"}', 422, /^repo: /],
    ['has an empty task', '{"repo":"/r","task":""}', 422, /^task: must not be empty/],
    ['has a field nobody knows', '{"repo":"/r","task":"t","branch":"x"}', 422, /there is no field.*branch/],
    ['has a branch that is none', '{"repo":"/r","task":"t","new_branch":"a b"}', 422, /^new_branch: /],
    ['has an agent without a name', '{"repo":"/r","task":"t","agent":{}}', 422, /^agent\.name: is required/],
    [
      'has a limit of no tokens',
      '{"repo":"/r","task":"t","limits":{"max_tokens":0}}',
      422,
      /^limits\.max_tokens: must be at least 1/,
    ],
    ['has no time', '{"repo":"/r","task":"t","timeout_seconds":0}', 422, /^timeout_seconds: must be at least 1/],
    [
      'has a file that leaves the repository',
      '{"repo":"/r","task":"t","files":[{"path":"../x","content":""}]}',
      422,
      /^files\[0\]\.path: /,
    ],
    [
      'has a file inside .git',
      '{"repo":"/r","task":"t","files":[{"path":".git/hooks/x","content":""}]}',
      422,
      /^files\[0\]\.path: .*\.git/,
    ],
  ])('a body that %s changes nothing', async (_, body, status, says) => {
    const response = await post(body)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({
      error: {
        code: status === 400 ? 'BadRequest' : 'Invalid',
        message: expect.stringMatching(says),
        hint: expect.any(String),
      },
    })
    expect(created).toEqual([])
  })
})

describe('who may ask', () => {
  it.each(['/tasks', '/tasks/task-b', '/tasks/task-b/events', '/metrics', '/nothing'])(
    '%s needs the token',
    async (path) => {
      for (const authorization of ['', 'Bearer wrong', 'Basic secret']) {
        const response = await app.request(path, { headers: { authorization } })
        expect(response.status).toBe(401)
        expect(await response.json()).toMatchObject({ error: { code: 'Unauthorized' } })
      }
    },
  )

  it('health is open, and says not ready until it is', async () => {
    expect((await app.request('/healthz')).status).toBe(200)
    expect((await app.request('/readyz')).status).toBe(503)
  })
})

describe('reading', () => {
  it('FR-2: one task, or a typed 404', async () => {
    expect(await (await call('/tasks/task-b')).json()).toMatchObject({ id: 'task-b' })
    const missing = await call('/tasks/other')
    expect(missing.status).toBe(404)
    expect(await missing.json()).toMatchObject({ error: { code: 'TaskNotFound' } })
  })

  it('a cancel that comes too late is a conflict', async () => {
    const late = await call('/tasks/task-b/cancel', { method: 'POST' })
    expect([late.status, await late.json()]).toMatchObject([409, { error: { code: 'TaskFinished' } }])
  })

  it('events as NDJSON from a sequence on', async () => {
    const text = await (await call('/tasks/task-b/events?after=1')).text()
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).sequence),
    ).toEqual([2, 3])
  })

  it('events as SSE resume by Last-Event-ID', async () => {
    const response = await call('/tasks/task-b/events', {
      headers: { accept: 'text/event-stream', 'last-event-id': '2' },
    })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    expect(await response.text()).toMatch(/^id: 3\nevent: output\ndata: \{/)
  })

  it('logs and diff as text', async () => {
    expect(await (await call('/tasks/task-b/logs')).text()).toBe('raw')
    expect(await (await call('/tasks/task-b/diff')).text()).toBe('diff')
    expect(await (await call('/tasks/task-b/diff?path=src%2Fa.ts')).text()).toBe('diff of src/a.ts')
    expect(await (await call('/tasks/task-b/files/src%2Fa%20%25.ts')).text()).toBe('head src/a %.ts')
    expect(await (await call('/tasks/task-b/files/a.ts?ref=base')).text()).toBe('base a.ts')
    const other = await call('/tasks/task-b/files/a.ts?ref=other')
    expect([other.status, await other.text()]).toEqual([422, expect.stringContaining('ref')])
  })

  it('an OpenAPI 3.1 document that lists every route', async () => {
    const document = (await (await app.request('/openapi.json')).json()) as { openapi: string; paths: object }
    expect(document.openapi).toBe('3.1.0')
    expect(Object.keys(document.paths).sort()).toEqual([
      '/groups/{name}',
      '/healthz',
      '/metrics',
      '/readyz',
      '/session',
      '/stream',
      '/tasks',
      '/tasks/{id}',
      '/tasks/{id}/answers',
      '/tasks/{id}/apply',
      '/tasks/{id}/approve',
      '/tasks/{id}/artifacts',
      '/tasks/{id}/artifacts/{name}',
      '/tasks/{id}/cancel',
      '/tasks/{id}/diff',
      '/tasks/{id}/events',
      '/tasks/{id}/files',
      '/tasks/{id}/files/{path}',
      '/tasks/{id}/logs',
      '/tasks/{id}/messages',
      '/tasks/{id}/pick',
      '/tasks/{id}/reject',
      '/tasks/{id}/release',
      '/tasks/{id}/retry',
      '/tasks/{id}/revise',
      '/tasks/{id}/terminal',
    ])
  })

  it('a route that is not there is a typed 404', async () => {
    expect(await (await call('/nothing')).json()).toMatchObject({ error: { code: 'NotFound' } })
  })
})

it('DELETE of a running task is 409 with a hint; with force=true it goes', async () => {
  const headers = { authorization: 'Bearer secret' }
  const refused = await app.request(`/tasks/${view.id}`, { method: 'DELETE', headers })
  expect(refused.status).toBe(409)
  expect(await refused.json()).toMatchObject({ error: { code: 'TaskNotFinished', hint: 'Cancel it.' } })
  expect((await app.request(`/tasks/${view.id}?force=true`, { method: 'DELETE', headers })).status).toBe(202)
  const unclear = await app.request(`/tasks/${view.id}?force=maybe`, { method: 'DELETE', headers })
  expect([unclear.status, await unclear.text()]).toEqual([422, expect.stringContaining('force')])
  const unknown = await app.request('/tasks/task-x', { method: 'DELETE', headers })
  expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { code: 'TaskNotFound' } }])
})

it('a kept file is a download, not a page of this server', async () => {
  const answer = await call('/tasks/task-b/artifacts/a.html')
  expect(await answer.text()).toBe('kept')
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': 'attachment; filename="a.html"',
    'x-content-type-options': 'nosniff',
  })
})
