import { createServer } from 'node:net'
import { join } from 'node:path'
import { type CreateTaskRequest, errorBodySchema, taskListSchema, taskViewSchema } from '@corral/protocol'
import { gitRepository, type PlatformProcess, startPlatformProcess } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess
let good: CreateTaskRequest

beforeAll(async () => {
  // No task starts here, so that nothing moves while the answers are compared.
  platform = await startPlatformProcess({ args: ['--max-tasks', '0', '--warm', '0'] })
  const repo = await gitRepository(join(platform.directory, 'repo'))
  good = { repo: repo.path, task: 'Do it', agent: { name: 'command', command: 'true' } }
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const taskCount = async (): Promise<number> =>
  taskListSchema.parse((await platform.api.request('GET', '/tasks')).json).tasks.length

describe('POST /tasks', () => {
  it('S4-A1 S4-A2 S4-P2.1 NFR-1: takes the seed’s fields and answers id and status at once', async () => {
    const body = { ...good, base_branch: 'main', new_branch: 'feature/x' }
    const answer = await platform.api.request('POST', '/tasks', { body })
    expect(answer.status).toBe(201)
    expect(answer.json).toEqual({ id: expect.stringMatching(/^task-[a-z0-9]{10}$/), status: 'QUEUED' })
    const { id } = answer.json as { id: string }
    expect(answer.headers.get('location')).toBe(`/tasks/${id}`)
    const record = await platform.api.get(id)
    expect(record).toMatchObject({ id, status: 'QUEUED', repo: good.repo, task: 'Do it', new_branch: 'feature/x' })
    expect(Date.parse(record.created_at)).not.toBeNaN()
  })

  it('NFR-3: a task has thirty minutes unless it asks for something else', async () => {
    expect((await platform.api.get(await platform.api.create(good))).timeout_seconds).toBe(1800)
    expect((await platform.api.get(await platform.api.create({ ...good, timeout_seconds: 60 }))).timeout_seconds).toBe(
      60,
    )
  })

  it('answers the first task to a repeat with the same Idempotency-Key, and refuses the key for another request', async () => {
    const headers = { 'idempotency-key': 'once-please' }
    const first = await platform.api.request('POST', '/tasks', { body: good, headers })
    const before = await taskCount()
    const second = await platform.api.request('POST', '/tasks', { body: good, headers })
    expect(second.status).toBe(201)
    expect(second.json).toEqual(first.json)
    expect(second.headers.get('idempotent-replay')).toBe('true')
    const other = await platform.api.request('POST', '/tasks', { body: { ...good, task: 'Another' }, headers })
    expect(other).toMatchObject({ status: 422, json: { error: { code: 'IdempotencyKeyReused' } } })
    expect(await taskCount()).toBe(before)
  })

  it('makes one task of many repeats at the same moment', async () => {
    const headers = { 'idempotency-key': 'all-at-once' }
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => platform.api.request('POST', '/tasks', { body: good, headers })),
    )
    const distinct = [...new Set(answers.map(({ status, text }) => `${status} ${text}`))]
    expect(distinct).toEqual([distinct[0]])
  })
})

describe('bad input is refused with a code and changes nothing', () => {
  const bad: { what: string; body?: unknown; rawBody?: string; status: number; code: string; says: RegExp }[] = [
    { what: 'no body', rawBody: '', status: 400, code: 'BadRequest', says: /not valid JSON/ },
    { what: 'half a document', rawBody: '{"repo":', status: 400, code: 'BadRequest', says: /not valid JSON/ },
    { what: 'a list', body: [], status: 400, code: 'BadRequest', says: /body: must be an object/ },
    { what: 'a string', body: 'do it', status: 400, code: 'BadRequest', says: /body: must be an object/ },
    { what: 'null', body: null, status: 400, code: 'BadRequest', says: /body: must be an object/ },
    { what: 'no repository', body: { task: 'x' }, status: 422, code: 'Invalid', says: /^repo: / },
    { what: 'no task', body: { repo: '/r' }, status: 422, code: 'Invalid', says: /^task: / },
    {
      what: 'an empty task',
      body: { repo: '/r', task: '' },
      status: 422,
      code: 'Invalid',
      says: /^task: must not be empty/,
    },
    {
      what: 'an empty repository',
      body: { repo: '', task: 'x' },
      status: 422,
      code: 'Invalid',
      says: /^repo: must not be empty/,
    },
    {
      what: 'a repository of another kind',
      body: { repo: 'ftp://host/r', task: 'x' },
      status: 422,
      code: 'Invalid',
      says: /ftp/,
    },
    {
      what: 'a relative repository',
      body: { repo: 'somewhere', task: 'x' },
      status: 422,
      code: 'Invalid',
      says: /repo/,
    },
    {
      what: 'a repository that is an option',
      body: { repo: '--upload-pack=evil', task: 'x' },
      status: 422,
      code: 'Invalid',
      says: /repo/,
    },
    {
      what: 'an unknown field',
      body: { repo: '/r', task: 'x', prompt: 'y' },
      status: 422,
      code: 'Invalid',
      says: /there is no field.*prompt/,
    },
    {
      what: 'an unknown agent',
      body: { repo: '/r', task: 'x', agent: { name: 'hal' } },
      status: 422,
      code: 'UnknownAgent',
      says: /hal/,
    },
    {
      what: 'a command agent without a command',
      body: { repo: '/r', task: 'x', agent: { name: 'command' } },
      status: 422,
      code: 'Invalid',
      says: /command/,
    },
    {
      what: 'a timeout of zero',
      body: { repo: '/r', task: 'x', timeout_seconds: 0 },
      status: 422,
      code: 'Invalid',
      says: /^timeout_seconds: must be at least 1/,
    },
    {
      what: 'a timeout of two days',
      body: { repo: '/r', task: 'x', timeout_seconds: 172_800 },
      status: 422,
      code: 'Invalid',
      says: /^timeout_seconds: must be at most/,
    },
    {
      what: 'a timeout in words',
      body: { repo: '/r', task: 'x', timeout_seconds: '30m' },
      status: 422,
      code: 'Invalid',
      says: /^timeout_seconds: must be a/,
    },
    {
      what: 'a branch git would refuse',
      body: { repo: '/r', task: 'x', new_branch: 'a..b' },
      status: 422,
      code: 'Invalid',
      says: /^new_branch: /,
    },
    {
      what: 'a branch that is an option',
      body: { repo: '/r', task: 'x', base_branch: '-f' },
      status: 422,
      code: 'Invalid',
      says: /^base_branch: /,
    },
    {
      what: 'a file above the repository',
      body: { repo: '/r', task: 'x', files: [{ path: '../up', content: '' }] },
      status: 422,
      code: 'Invalid',
      says: /^files\[0\]\.path: /,
    },
    {
      what: 'a file at an absolute path',
      body: { repo: '/r', task: 'x', files: [{ path: '/etc/passwd', content: '' }] },
      status: 422,
      code: 'Invalid',
      says: /^files\[0\]\.path: /,
    },
    {
      what: 'a file inside .git',
      body: { repo: '/r', task: 'x', files: [{ path: '.git/hooks/post-commit', content: '' }] },
      status: 422,
      code: 'Invalid',
      says: /^files\[0\]\.path: .*\.git/,
    },
    {
      what: 'egress without a port',
      body: { repo: '/r', task: 'x', egress: ['example.com'] },
      status: 422,
      code: 'Invalid',
      says: /^egress\[0\]: /,
    },
    {
      what: 'egress to everything',
      body: { repo: '/r', task: 'x', egress: ['*:443'] },
      status: 422,
      code: 'Invalid',
      says: /^egress\[0\]: /,
    },
    {
      what: 'a pool and a template',
      body: {
        repo: '/r',
        task: 'x',
        agent: { name: 'command', command: 'true' },
        sandbox: { pool: 'a', template: 'b' },
      },
      status: 422,
      code: 'Invalid',
      says: /pool/,
    },
    {
      what: 'more than the largest body',
      body: { repo: '/r', task: 'x'.repeat(17 * 1024 * 1024) },
      status: 413,
      code: 'RequestEntityTooLarge',
      says: /16/,
    },
  ]
  it.each(bad)('POST /tasks with $what', async ({ body, rawBody, status, code, says }) => {
    const before = await taskCount()
    const answer = await platform.api.request('POST', '/tasks', rawBody === undefined ? { body } : { rawBody })
    expect(`${answer.status} ${(answer.json as { error?: { code: string } })?.error?.code}`).toBe(`${status} ${code}`)
    const { error } = errorBodySchema.parse(answer.json)
    expect(error.message).toMatch(says)
    expect(error.message).not.toMatch(/at .*\.js:\d+/)
    expect(await taskCount()).toBe(before)
  })

  it.each<{ what: string; more: () => Partial<CreateTaskRequest>; code: string; says: string }>([
    {
      what: 'labels Kubernetes would refuse',
      more: () => ({ labels: { 'not a label': 'x' } }),
      code: 'Invalid',
      says: 'not a label',
    },
    {
      what: 'a path where nothing is',
      more: () => ({ repo: '/no/such/place' }),
      code: 'RepositoryNotFound',
      says: 'there is no git repository at /no/such/place',
    },
    {
      what: 'a file:// address where nothing is',
      more: () => ({ repo: 'file:///no/such/place' }),
      code: 'RepositoryNotFound',
      says: 'there is no git repository at /no/such/place',
    },
    {
      what: 'a directory that is no repository',
      more: () => ({ repo: platform.home }),
      code: 'RepositoryNotFound',
      says: 'is a directory without a git repository',
    },
    {
      what: 'a base branch the repository does not have',
      more: () => ({ base_branch: 'nowhere' }),
      code: 'BranchNotFound',
      says: 'there is no branch "nowhere" in',
    },
  ])('POST /tasks with $what', async ({ more, code, says }) => {
    const before = await taskCount()
    const answer = await platform.api.request('POST', '/tasks', { body: { ...good, ...more() } })
    const { error } = errorBodySchema.parse(answer.json)
    expect([answer.status, error.code]).toEqual([422, code])
    expect(error.message).toContain(says)
    expect(error.hint).toBeTruthy()
    expect(await taskCount()).toBe(before)
  })

  it.each([
    { method: 'GET', path: '/tasks/task-nothere000', status: 404, code: 'TaskNotFound' },
    { method: 'GET', path: '/tasks/..%2f..%2fetc', status: 404, code: 'TaskNotFound' },
    { method: 'GET', path: '/tasks/task-nothere000/events', status: 404, code: 'TaskNotFound' },
    { method: 'GET', path: '/tasks/task-nothere000/logs', status: 404, code: 'TaskNotFound' },
    { method: 'GET', path: '/tasks/task-nothere000/diff', status: 404, code: 'TaskNotFound' },
    { method: 'POST', path: '/tasks/task-nothere000/cancel', status: 404, code: 'TaskNotFound' },
    { method: 'POST', path: '/tasks/task-nothere000/retry', status: 404, code: 'TaskNotFound' },
    { method: 'GET', path: '/tasks?status=BUSY', status: 422, code: 'Invalid', says: /^status: / },
    { method: 'GET', path: '/tasks?limit=0', status: 422, code: 'Invalid', says: /^limit: / },
    { method: 'GET', path: '/nothing', status: 404, code: 'NotFound' },
    { method: 'DELETE', path: '/tasks', status: 405, code: 'MethodNotAllowed' },
  ])('$method $path', async ({ method, path, status, code, says = /./ }) => {
    const answer = await platform.api.request(method, path)
    const { error } = errorBodySchema.parse(answer.json)
    expect([answer.status, error.code, error.message]).toEqual([status, code, expect.stringMatching(says)])
  })

  it('a task that has not ended cannot be retried, one that was cancelled cannot be cancelled again', async () => {
    const id = await platform.api.create(good)
    expect(await platform.api.request('POST', `/tasks/${id}/retry`)).toMatchObject({
      status: 409,
      json: { error: { code: 'TaskNotFinished' } },
    })
    expect((await platform.api.request('POST', `/tasks/${id}/cancel`)).status).toBe(202)
    await platform.api.untilPhase(id, 'CANCELLED')
    expect(await platform.api.request('POST', `/tasks/${id}/cancel`)).toMatchObject({
      status: 409,
      json: { error: { code: 'TaskFinished' } },
    })
  })
})

describe('who may ask', () => {
  const routes = ['GET /tasks', 'POST /tasks', 'GET /tasks/x', 'GET /tasks/x/events', 'GET /tasks/x/logs'] as const
  const more = ['GET /tasks/x/diff', 'POST /tasks/x/cancel', 'POST /tasks/x/retry', 'GET /metrics'] as const
  it.each([...routes, ...more])('%s needs the token', async (route) => {
    const [method = '', path = ''] = route.split(' ')
    const before = await taskCount()
    for (const token of [null, 'wrong', `${platform.token}x`, platform.token.slice(0, -1)]) {
      const answer = await platform.api.request(method, path, {
        token,
        ...(method === 'POST' ? { body: good } : {}),
      })
      expect(answer).toMatchObject({ status: 401, json: { error: { code: 'Unauthorized' } } })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
    expect(await taskCount()).toBe(before)
  })

  it.each(['/healthz', '/readyz', '/openapi.json'])('%s is open', async (path) => {
    expect((await platform.api.request('GET', path, { token: null })).status).toBe(200)
  })

  it('listens on loopback only', async () => {
    const { port } = new URL(platform.url)
    const other = createServer()
    // The port is free on another address of this machine exactly when the platform did not take all of them.
    await new Promise<void>((resolve, reject) => {
      other.once('error', reject)
      other.listen(Number(port), '127.0.0.2', resolve)
    })
    await new Promise((resolve) => other.close(resolve))
  })
})

describe('reading', () => {
  it('lists newest first, by status, in pages', async () => {
    const ids: string[] = []
    for (let index = 0; index < 3; index++) ids.push(await platform.api.create(good))
    const page = taskListSchema.parse((await platform.api.request('GET', '/tasks?status=QUEUED&limit=2')).json)
    expect(page.tasks.map(({ id }) => id)).toEqual([ids[2], ids[1]])
    const next = taskListSchema.parse((await platform.api.request('GET', `/tasks?limit=1&after=${page.next}`)).json)
    expect(next.tasks.map(({ id }) => id)).toEqual([ids[0]])
    const none = taskListSchema.parse((await platform.api.request('GET', '/tasks?status=SUCCEEDED')).json)
    expect(none.tasks).toEqual([])
  })

  it('FR-8 S4-B2 S4-P2.2: shows what the record holds, in the same words for every reader', async () => {
    const id = await platform.api.create({ ...good, labels: { team: 'blue' }, egress: ['packages.example.com:443'] })
    const view = taskViewSchema.parse((await platform.api.request('GET', `/tasks/${id}`)).json)
    expect(view).toMatchObject({ labels: { team: 'blue' }, egress: ['packages.example.com:443'] })
    const cli = await platform.corral(['task', 'get', id, '--json'])
    expect(taskViewSchema.parse(JSON.parse(cli.stdout))).toEqual(view)
  })

  it('S4-B1: describes every route in OpenAPI 3.1', async () => {
    const document = (await platform.api.request('GET', '/openapi.json')).json as {
      openapi: string
      paths: Record<string, Record<string, { responses: Record<string, unknown>; security?: unknown[] }>>
    }
    expect(document.openapi).toBe('3.1.0')
    const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    // packages/server/src/app.test.ts has the whole list.
    expect(routes).toEqual(
      expect.arrayContaining([
        'DELETE /tasks/{id}',
        'GET /healthz',
        'GET /metrics',
        'GET /readyz',
        'GET /tasks',
        'GET /tasks/{id}',
        'GET /tasks/{id}/diff',
        'GET /tasks/{id}/events',
        'GET /tasks/{id}/logs',
        'POST /tasks',
        'POST /tasks/{id}/cancel',
        'POST /tasks/{id}/retry',
      ]),
    )
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path ?? '')
    for (const path of references) {
      const found = path.split('/').reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], document)
      expect(found, path).toBeDefined()
    }
  })

  it('NFR-6 S4-G7: counts tasks in /metrics', async () => {
    const { text, headers } = await platform.api.request('GET', '/metrics')
    expect(headers.get('content-type')).toMatch(/^text\/plain/)
    expect(text).toMatch(/^# TYPE corral_tasks_created_total counter$/m)
    expect(Number(/^corral_tasks_created_total (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(0)
  })
})
