import { fileURLToPath } from 'node:url'
import { silentLogger } from '@corral/ports'
import { CorralError } from '@corral/protocol'
import { Registry } from 'prom-client'
import { beforeEach, describe, expect, it } from 'vitest'
import { type AppOptions, createApp } from './app.js'

// The HTTP API as its clients meet it, whole, in golden/: the document they read, and what each route asks of the services and
// answers. A change shows there as a difference to read; `vitest run packages/server/src/golden.test.ts -u` takes it.

const goldenFile = (name: string): string => fileURLToPath(new URL(`golden/${name}.golden`, import.meta.url))
const task = { id: 'task-b', status: 'QUEUED' }
const project = { name: 'p', resource_version: '7' }
const environment = { name: 'e' }
async function* lines(...values: object[]): AsyncIterable<object> {
  yield* values
}
async function* text(value: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(value)
}

/** What each method of the services answers; those that are not here answer nothing. */
const answers: Record<string, () => unknown> = {
  'tasks.create': () => ({ task, isReplay: true, group: { name: 'g', tasks: ['task-b', 'task-c'] } }),
  'tasks.list': () => ({ tasks: [] }),
  ...Object.fromEntries(
    ['get', 'cancel', 'decide', 'answer', 'remove', 'release'].map((name) => [`tasks.${name}`, () => task]),
  ),
  ...Object.fromEntries(
    ['retry', 'message', 'pick'].map((name) => [`tasks.${name}`, () => ({ task, isReplay: true })]),
  ),
  'tasks.group': () => ({ name: 'g', tasks: [] }),
  'tasks.events': () => lines({ sequence: 1, type: 'output' }),
  'tasks.logs': () => text('log'),
  'tasks.diff': () => text('diff'),
  'tasks.files': () => ({ files: [] }),
  'tasks.file': () => ({ sizeBytes: 4, content: text('file') }),
  'tasks.apply': () => ({ how: 'merge' }),
  'tasks.artifacts': () => [{ name: 'a' }],
  'tasks.artifact': () => ({ sizeBytes: 4, content: text('kept') }),
  ...Object.fromEntries(['create', 'get', 'replace', 'change'].map((name) => [`projects.${name}`, () => project])),
  'projects.list': () => [project],
  ...Object.fromEntries(['get', 'build', 'rebuild'].map((name) => [`environments.${name}`, () => environment])),
  'environments.list': () => [environment],
  'environments.events': () => ({ events: [] }),
  ...Object.fromEntries(
    ['agents', 'secrets', 'sandboxes', 'pools'].map((name) => [`platform.${name}`, () => [{ name }]]),
  ),
  'platform.resizePool': () => ({ name: 'pool', replicas: 2 }),
  'platform.object': () => ({ kind: 'Pod', name: 'x' }),
  'platform.sandboxProviders': () => [{ name: 'here' }, { name: 'there', settings: { name: 'there' } }],
  'platform.providerChecks': () => lines({ name: 'reachable' }, { name: 'allowed' }),
  'platform.demo': () => ({ repo: '/demo', task: 'fix' }),
  ...Object.fromEntries(['get', 'change'].map((name) => [`settings.${name}`, () => ({ revision: '3' })])),
  'settings.test': () => lines({ name: 'reachable' }),
  'settings.contexts': () => ({ contexts: [] }),
  'settings.namespaces': () => ({ names: ['a'] }),
  'settings.runtimeClasses': () => ({ names: ['b'] }),
}

let calls: string[]
/** A service that notes what it is asked. */
function service(name: string, more: object = {}): never {
  return new Proxy(more, {
    get: (target, method: string) =>
      method in target
        ? (target as Record<string, unknown>)[method]
        : (...given: unknown[]): unknown => {
            const shown = JSON.stringify(given.filter((value) => !(value instanceof AbortSignal)))
            calls.push(`${name}.${method} ${shown.slice(1, -1)}`.trim())
            const answer = answers[`${name}.${method}`]?.()
            return method === 'providerChecks' ? answer : Promise.resolve(answer)
          },
  }) as never
}

const options = (): AppOptions => ({
  tasks: service('tasks'),
  projects: service('projects'),
  environments: service('environments'),
  platform: service('platform', { settings: service('settings') }),
  token: 'secret',
  isReady: () => true,
  registry: new Registry(),
  version: '1.2.3',
  log: silentLogger,
})
beforeEach(() => {
  calls = []
})

interface Described {
  description?: string
  required?: boolean
  content?: object
}
interface Operation extends Described {
  summary: string
  security?: object[]
  parameters?: { name: string; in: string; required?: boolean; schema: object }[]
  requestBody?: Described
  responses: Record<string, Described>
}

/** A route without the schemas of its bodies, which are the protocol's and have tests there. */
function shown(
  route: string,
  { summary, description, security, parameters = [], requestBody, responses }: Operation,
): string[] {
  const types = (described: Described): string => Object.keys(described.content ?? {}).join(', ')
  return [
    `${route}: ${summary}`,
    ...(description ? [`  ${description}`] : []),
    ...(security
      ? [`  may: ${security.flatMap((each) => Object.keys(each)).join(' or ')} ${JSON.stringify(security)}`]
      : []),
    ...parameters.map(
      ({ name, in: where, required, schema }) =>
        `  ${where} ${name}${required ? ' (required)' : ''}: ${JSON.stringify(schema)}`,
    ),
    ...(requestBody
      ? [`  body${requestBody.required ? ' (required)' : ''}: ${requestBody.description} [${types(requestBody)}]`]
      : []),
    ...Object.entries(responses).map(([code, answer]) => `  ${code}: ${answer.description} [${types(answer)}]`),
  ]
}

it('the OpenAPI document is as recorded', async () => {
  const { paths, components, ...head } = (await (await createApp(options()).request('/openapi.json')).json()) as {
    paths: Record<string, Record<string, Operation>>
    components: { securitySchemes: object }
  }
  const routes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) => shown(`${method.toUpperCase()} ${path}`, operation)),
  )
  const told = [JSON.stringify(head), JSON.stringify(components.securitySchemes), ...routes].join('\n')
  await expect(`${told}\n`).toMatchFileSnapshot(goldenFile('openapi'))
})

const shownHeaders = ['content-type', 'location', 'etag', 'idempotent-replay', 'content-disposition', 'content-length']
const alsoShown = ['x-corral-size', 'x-content-type-options', 'content-security-policy', 'cache-control', 'set-cookie']

describe('every route', () => {
  const cases: [request: string, body?: unknown, headers?: Record<string, string>][] = [
    ['GET /healthz'],
    ['GET /readyz'],
    ['GET /metrics'],
    ['POST /tasks', { repo: '/r', task: 't' }, { 'idempotency-key': 'k' }],
    ['POST /tasks', { repo: '/r', task: 't' }, { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }],
    ['GET /tasks'],
    ['GET /tasks?status=QUEUED&group=g&project=p&limit=5&after=task-a'],
    ['GET /tasks/task-b'],
    ['DELETE /tasks/task-b'],
    ['DELETE /tasks/task-b?force=true'],
    ['POST /tasks/task-b/cancel'],
    ['POST /tasks/task-b/retry'],
    ['POST /tasks/task-b/retry', { from: 'agent' }],
    ['POST /tasks/task-b/messages', { task: 'and this' }],
    ['POST /tasks/task-b/approve', { revision: 1 }],
    ['POST /tasks/task-b/revise', { revision: 1, remark: 'smaller' }],
    ['POST /tasks/task-b/reject', { revision: 1, remark: 'no' }],
    ['POST /tasks/task-b/answers', { question: 'q1', option: 'yes' }],
    ['GET /tasks/task-b/events'],
    ['GET /tasks/task-b/events?after=2&follow=false'],
    ['GET /tasks/task-b/events', undefined, { 'last-event-id': '3', accept: 'text/event-stream' }],
    ['GET /tasks/task-b/logs'],
    ['GET /tasks/task-b/diff'],
    ['GET /tasks/task-b/diff?path=a%20b'],
    ['GET /tasks/task-b/files'],
    ['GET /tasks/task-b/files/src%2Fa.ts'],
    ['GET /tasks/task-b/files/a.ts?ref=base'],
    ['POST /tasks/task-b/apply', { how: 'merge' }],
    ['GET /tasks/task-b/artifacts'],
    ['GET /tasks/task-b/artifacts/a.html'],
    ['GET /groups/g'],
    ['POST /tasks/task-b/pick'],
    ['POST /tasks/task-b/pick', { force: true }],
    ['POST /tasks/task-b/release'],
    ['GET /tasks/task-b/terminal'],
    ['GET /stream'],
    ['GET /projects'],
    ['POST /projects', { name: 'p' }],
    ['GET /projects/p'],
    ['PUT /projects/p', {}, { 'if-match': '"7"' }],
    ['PUT /projects/p', {}],
    ['PATCH /projects/p', {}, { 'if-match': 'W/"7"' }],
    ['PATCH /projects/p', { resource_version: '8' }, { 'if-match': '*' }],
    ['DELETE /projects/p'],
    ['GET /environments'],
    ['POST /environments', { repo: '/r' }],
    ['GET /environments/e'],
    ['POST /environments/e/build', {}],
    ['GET /environments/e/events'],
    ['GET /environments/e/events?after=4'],
    ['DELETE /environments/e'],
    ['GET /agents'],
    ['GET /secrets'],
    ['PUT /secrets/anthropic', { value: 'sk' }],
    ['DELETE /secrets/anthropic'],
    ['GET /sandboxes'],
    ['GET /pools'],
    ['PATCH /pools/pool', { replicas: 2 }],
    ['GET /objects/pod/x'],
    ['GET /objects/secret/x'],
    ['GET /settings'],
    ['PATCH /settings', {}, { 'if-match': '"3"' }],
    ['PATCH /settings', {}],
    ['POST /settings/test'],
    ['POST /settings/test', { settings: {} }],
    ['GET /kubernetes/contexts'],
    ['GET /kubernetes/namespaces?context=c'],
    ['GET /kubernetes/runtime-classes'],
    ['GET /providers'],
    ['POST /providers/here/test'],
    ['POST /providers/there/test'],
    ['POST /providers/nowhere/test'],
    ['POST /demo'],
    ['GET /session'],
    ['POST /session', { token: 'wrong' }],
    ['POST /session', { code: 'wrong' }],
  ]

  it('asks the services and answers as recorded', async () => {
    const app = createApp(options())
    const told: string[] = []
    for (const [request, body, headers] of cases) {
      calls = []
      const [method = '', path = ''] = request.split(' ')
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const length = body === undefined ? {} : { 'content-length': String(JSON.stringify(body).length) }
      const all = { authorization: 'Bearer secret', 'content-type': 'application/json', ...length, ...headers }
      const answer = await app.request(path, { method, headers: all, ...sent })
      const said = [...shownHeaders, ...alsoShown].flatMap((name) => {
        const value = answer.headers.get(name)
        return value === null ? [] : [`  ${name}: ${value}`]
      })
      told.push(
        `${request}${body === undefined ? '' : ` ${JSON.stringify(body)}`}${headers ? ` ${JSON.stringify(headers)}` : ''}`,
        ...calls.map((call) => `  → ${call}`),
        `  ← ${answer.status}`,
        ...said,
        `  ${(await answer.text()).trim().replaceAll('\n', '\n  ')}`.trimEnd(),
      )
    }
    await expect(`${told.filter((line) => line !== '').join('\n')}\n`).toMatchFileSnapshot(goldenFile('routes'))
  })

  it('of what is not there is absent', async () => {
    const { tasks, token, isReady, registry, version, log } = options()
    const app = createApp({ tasks, token, isReady, registry, version, log })
    for (const path of ['/projects', '/environments', '/agents', '/settings', '/pools'])
      expect([path, (await app.request(path, { headers: { authorization: 'Bearer secret' } })).status]).toEqual([
        path,
        404,
      ])
  })
})

describe('a platform whose disk is full', () => {
  const full = () => createApp({ ...options(), diskProblem: () => 'no room' })
  const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' }
  it.each([
    ['/tasks', { repo: '/r', task: 't' }],
    ['/tasks/task-b/retry', {}],
    ['/tasks/task-b/messages', { task: 'x' }],
    ['/tasks/task-b/pick', {}],
    ['/demo', {}],
  ])('takes no POST %s', async (path, body) => {
    const answer = await full().request(path, { method: 'POST', headers, body: JSON.stringify(body) })
    expect([answer.status, await answer.json()]).toMatchObject([
      507,
      { error: { code: 'DiskFull', message: 'no room' } },
    ])
    expect(calls).toEqual([])
  })

  it('says so to who asks whether it is ready, and answers what is only read', async () => {
    const ready = await full().request('/readyz')
    expect([ready.status, await ready.text()]).toEqual([503, 'DiskFull: no room'])
    expect((await full().request('/tasks/task-b', { headers })).status).toBe(200)
    const starting = await createApp({ ...options(), isReady: () => false }).request('/readyz')
    expect([starting.status, await starting.text()]).toEqual([503, 'not ready'])
  })
})

describe('a failure behind a route', () => {
  const failing = (error: unknown) => {
    const { tasks: _tasks, ...rest } = options()
    return createApp({ ...rest, tasks: { get: () => Promise.reject(error) } as never })
  }
  it.each<{ what: string; error: unknown; status: number; body: object }>([
    {
      what: 'a refusal with its hint',
      error: Object.assign(new CorralError('NotFound', 'no'), { hint: 'Look.' }),
      status: 404,
      body: { code: 'NotFound', message: 'no', hint: 'Look.' },
    },
    {
      what: 'a status of Kubernetes that we have no code for',
      error: Object.assign(new Error('teapot'), { code: 'Teapot', status: 418 }),
      status: 418,
      body: { code: 'Teapot', message: 'teapot' },
    },
    {
      what: 'one of the operating system, whose words are for the log',
      error: Object.assign(new Error('open /etc/x'), { code: 'ENOENT' }),
      status: 500,
      body: { code: 'InternalError', message: 'the request failed inside the platform' },
    },
    {
      what: 'a status that is none',
      error: Object.assign(new Error('x'), { code: 'Odd', status: 600 }),
      status: 500,
      body: { code: 'InternalError' },
    },
  ])('is $status: $what', async ({ error, status, body }) => {
    const answer = await failing(error).request('/tasks/task-b', { headers: { authorization: 'Bearer secret' } })
    expect([answer.status, await answer.json()]).toMatchObject([status, { error: body }])
  })
})

it('a label with a name that JavaScript keeps for itself is refused by that name', async () => {
  const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' }
  for (const name of ['__proto__', 'constructor', 'prototype']) {
    const body = `{"repo":"/r","task":"t","labels":{"${name}":"x"}}`
    const answer = await createApp(options()).request('/tasks', { method: 'POST', headers, body })
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining(name)])
  }
  expect(calls).toEqual([])
})

describe('JSON answers', () => {
  const many = { tasks: Array.from({ length: 200 }, (_, n) => ({ id: `task-${n}` })) }
  const ask = (accepted: string, tasks: object = many, method = 'GET') => {
    const { tasks: _tasks, ...rest } = options()
    const app = createApp({ ...rest, tasks: { list: async () => tasks } as never })
    return app.request('/tasks', { method, headers: { authorization: 'Bearer secret', 'accept-encoding': accepted } })
  }
  it.each([
    { what: 'long ones for who takes gzip', accepted: 'br, gzip', encoding: 'gzip' },
    { what: 'not for who does not', accepted: 'br', encoding: null },
    { what: 'not short ones', accepted: 'gzip', tasks: { tasks: [] }, encoding: null },
  ])('are compressed: $what', async ({ accepted, tasks, encoding }) => {
    const answer = await ask(accepted, tasks)
    expect(answer.headers.get('content-encoding')).toBe(encoding)
    if (accepted.includes('gzip')) expect(answer.headers.get('vary')).toBe('accept-encoding')
    if (!encoding) expect(await answer.json()).toEqual(tasks ?? many)
  })
})
