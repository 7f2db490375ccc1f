import { once } from 'node:events'
import { connect } from 'node:net'
import { silentLogger } from '@corral/ports'
import { TaskError, type TaskService } from '@corral/tasks'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApp } from './app.js'
import { type HttpServer, listen } from './listen.js'

/** Every way a client can get it wrong, over real HTTP: each is a 4xx with a code and a next move, never a 500. */

const view = {
  id: 'task-b',
  status: 'QUEUED',
  repo: '/r',
  task: 't',
  agent: { name: 'claude' },
  timeout_seconds: 1800,
  created_at: '2026-01-01T00:00:00Z',
} as const
let created = 0
let server: HttpServer

beforeAll(async () => {
  const known = (id: string): void => {
    if (id !== view.id) throw new TaskError('TaskNotFound', `there is no task "${id}"`)
  }
  const tasks: TaskService = {
    async create() {
      created += 1
      return { task: view, isReplay: false }
    },
    async get(id) {
      known(id)
      return view
    },
    list: async () => ({ tasks: [view] }),
    cancel: async () => view,
    retry: async () => ({ task: view, isReplay: false }),
    decide: async () => view,
    group: async (name) => ({ name, branch: 'b', tasks: [view] }),
    apply: async () => {
      throw new Error('no work tree')
    },
    pick: async () => ({ task: view, isReplay: false }),
    release: async () => view,
    answer: async () => view,
    message: async () => ({ task: view, isReplay: false }),
    remove: async () => view,
    async events(id) {
      known(id)
      return (async function* () {})()
    },
    logs: async () => (async function* () {})(),
    diff: async () => (async function* () {})(),
    files: async () => ({ files: [], additions: 0, deletions: 0, truncated: false }),
    file: async () => ({ sizeBytes: 0, content: (async function* () {})() }),
    artifacts: async () => [],
    artifact: async () => ({ sizeBytes: 0, content: (async function* () {})() }),
  }
  const app = createApp({
    tasks,
    token: 'secret',
    isReady: () => true,
    registry: new Registry(),
    version: '1.2.3',
    log: silentLogger,
  })
  server = await listen({ fetch: app.fetch, port: 0 })
})
afterAll(() => server.close())

const authorization = 'Bearer secret'
const good = '{"repo":"/r","task":"t"}'

interface Answer {
  status: number
  headers: Headers
  error: { code: string; message: string; hint: string } | undefined
}

async function call(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`${server.url}${path}`, {
    ...init,
    headers: { authorization, ...(init.headers as Record<string, string>) },
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  const { error } = (isJson && text !== '' ? JSON.parse(text) : {}) as { error?: Answer['error'] }
  return { status: response.status, headers: response.headers, error }
}

/** Bytes that no HTTP client would send. */
async function raw(text: string): Promise<{ status: number; code: string | undefined }> {
  const socket = connect(server.port, '127.0.0.1')
  await once(socket, 'connect')
  socket.end(text)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1])
  return { status, code: body.startsWith('{') ? JSON.parse(body).error.code : undefined }
}

describe('JSON is taken whatever a tool that does not care says it is', () => {
  it.each([
    { what: 'curl -d without a header', type: 'application/x-www-form-urlencoded' },
    { what: 'fetch with a string', type: 'text/plain;charset=UTF-8' },
    { what: 'no header at all', type: '' },
    { what: 'JSON with a character set', type: 'application/json; charset=utf-8' },
    { what: 'a kind of JSON', type: 'application/vnd.corral+json' },
  ])('$what', async ({ type }) => {
    const body = new Blob([good], { type })
    const before = created
    const { status, error } = await call('/tasks', {
      method: 'POST',
      body,
      headers: type === '' ? {} : { 'content-type': type },
    })
    expect({ status, error }).toEqual({ status: 201, error: undefined })
    expect(created - before).toBe(1)
  })
})

describe('a mistake of the client is a 4xx that says what to do', () => {
  const json = { 'content-type': 'application/json' }
  const post = (body: string, headers: Record<string, string> = json): RequestInit => ({
    method: 'POST',
    body,
    headers,
  })
  it.each<{ what: string; path: string; init?: RequestInit; status: number; code: string; says?: RegExp }>([
    {
      what: 'XML',
      path: '/tasks',
      init: post('<a/>', { 'content-type': 'application/xml' }),
      status: 415,
      code: 'UnsupportedMediaType',
      says: /application\/xml/,
    },
    {
      what: 'a form with parts',
      path: '/tasks',
      init: post('--x', { 'content-type': 'multipart/form-data; boundary=x' }),
      status: 415,
      code: 'UnsupportedMediaType',
      says: /multipart\/form-data/,
    },
    {
      what: 'a content type that is none',
      path: '/tasks',
      init: post(good, { 'content-type': ';;;/' }),
      status: 201,
      code: '',
    },
    {
      what: 'a real form',
      path: '/tasks',
      init: post('repo=/r&task=t', { 'content-type': 'application/x-www-form-urlencoded' }),
      status: 400,
      code: 'BadRequest',
      says: /not valid JSON/,
    },
    {
      what: 'half a document',
      path: '/tasks',
      init: post('{"repo":'),
      status: 400,
      code: 'BadRequest',
      says: /not valid JSON/,
    },
    { what: 'nothing', path: '/tasks', init: post(''), status: 400, code: 'BadRequest', says: /not valid JSON/ },
    {
      what: 'a number',
      path: '/tasks',
      init: post('7'),
      status: 400,
      code: 'BadRequest',
      says: /body: must be an object, not a number/,
    },
    {
      what: 'an empty task',
      path: '/tasks',
      init: post('{"repo":"/r","task":""}'),
      status: 422,
      code: 'Invalid',
      says: /task: must not be empty/,
    },
    {
      what: 'a task of another type',
      path: '/tasks',
      init: post('{"repo":"/r","task":7}'),
      status: 422,
      code: 'Invalid',
      says: /task: must be a text, not a number/,
    },
    {
      what: 'a prototype',
      path: '/tasks',
      init: post('{"repo":"/r","task":"t","__proto__":{"x":1},"constructor":1}'),
      status: 422,
      code: 'Invalid',
      says: /there is no field/,
    },
    {
      what: 'a hundred thousand brackets',
      path: '/tasks',
      init: post('['.repeat(100_000)),
      status: 400,
      code: 'BadRequest',
      says: /not valid JSON/,
    },
    {
      what: 'a NUL in the prompt',
      path: '/tasks',
      init: post('{"repo":"/r","task":"a\\u0000b"}'),
      status: 422,
      code: 'Invalid',
      says: /NUL/,
    },
    {
      what: 'an empty Idempotency-Key',
      path: '/tasks',
      init: post(good, { ...json, 'idempotency-key': '' }),
      status: 422,
      code: 'Invalid',
      says: /idempotency-key: must not be empty/,
    },
    {
      what: 'a long Idempotency-Key',
      path: '/tasks',
      init: post(good, { ...json, 'idempotency-key': 'x'.repeat(256) }),
      status: 422,
      code: 'Invalid',
      says: /^idempotency-key: .*255/,
    },
    {
      what: 'a limit in words',
      path: '/tasks?limit=ten',
      status: 422,
      code: 'Invalid',
      says: /limit: must be a number/,
    },
    { what: 'no limit', path: '/tasks?limit=0', status: 422, code: 'Invalid', says: /limit: must be at least 1/ },
    {
      what: 'a filter there is none of',
      path: '/tasks?cursor=x',
      status: 422,
      code: 'Invalid',
      says: /there is no field.*cursor/,
    },
    { what: 'two limits', path: '/tasks?limit=1&limit=2', status: 422, code: 'Invalid', says: /^limit: / },
    {
      what: 'a status that does not exist',
      path: '/tasks?status=DONE',
      status: 422,
      code: 'Invalid',
      says: /status: must be one of .*SUCCEEDED/,
    },
    {
      what: 'a sequence below zero',
      path: '/tasks/task-b/events?after=-1',
      status: 422,
      code: 'Invalid',
      says: /^after: must be at least 0/,
    },
    {
      what: 'a sequence no number holds',
      path: '/tasks/task-b/events?after=99999999999999999999',
      status: 422,
      code: 'Invalid',
      says: /^after: /,
    },
    {
      what: 'a Last-Event-ID that is none',
      path: '/tasks/task-b/events',
      init: { headers: { 'last-event-id': 'x' } },
      status: 422,
      code: 'Invalid',
      says: /last-event-id: must be a number/,
    },
    {
      what: 'a follow that is neither',
      path: '/tasks/task-b/events?follow=maybe',
      status: 422,
      code: 'Invalid',
      says: /true, false/,
    },
    { what: 'an id with half an escape', path: '/tasks/%E0%A4%A', status: 404, code: 'TaskNotFound' },
    { what: 'an id with a NUL', path: '/tasks/a%00b', status: 404, code: 'TaskNotFound' },
    { what: 'an unknown task', path: '/tasks/other', status: 404, code: 'TaskNotFound' },
    { what: 'an unknown route', path: '/nothing', status: 404, code: 'NotFound', says: /there is no \/nothing/ },
    {
      what: 'a wrong token',
      path: '/tasks',
      init: { headers: { authorization: 'Bearer no' } },
      status: 401,
      code: 'Unauthorized',
    },
    { what: 'no token', path: '/tasks', init: { headers: { authorization: '' } }, status: 401, code: 'Unauthorized' },
  ])('$what', async ({ path, init, status, code, says }) => {
    const answer = await call(path, init)
    expect([answer.status, answer.error?.code ?? '']).toEqual([status, code])
    if (says) expect(answer.error?.message).toMatch(says)
    if (status >= 400) expect(answer.error?.hint).toMatch(/\.$/)
  })

  it.each([
    { method: 'DELETE', path: '/tasks', allow: 'GET, HEAD, POST' },
    { method: 'PUT', path: '/tasks/task-b', allow: 'DELETE, GET, HEAD' },
    { method: 'GET', path: '/tasks/task-b/cancel', allow: 'POST' },
    { method: 'PATCH', path: '/openapi.json', allow: 'GET, HEAD' },
  ])('$method $path is a 405 that names $allow', async ({ method, path, allow }) => {
    const { status, headers, error } = await call(path, { method })
    expect([status, error?.code, headers.get('allow')]).toEqual([405, 'MethodNotAllowed', allow])
    expect(error?.hint).toContain(allow)
    const asked = await call(path, { method: 'OPTIONS' })
    expect([asked.status, asked.headers.get('allow')]).toEqual([204, allow])
  })

  it('$URL/tasks/$ID/events with no $ID is told as that, not as a route to look up', async () => {
    const { status, error } = await call('/tasks//events')
    expect([status, error?.code]).toEqual([404, 'NotFound'])
    expect(error?.hint).toMatch(/part of the path is empty: a variable/)
  })

  it.each([
    { what: 'that says how long it is', init: { body: `{"task":"${'x'.repeat(17 * 1024 * 1024)}"}` } },
    {
      what: 'that comes in pieces',
      init: { duplex: 'half', body: new Blob([`{"task":"${'x'.repeat(17 * 1024 * 1024)}"}`]).stream() } as RequestInit,
    },
  ])('a body $what and is larger than allowed', async ({ init }) => {
    const { status, error } = await call('/tasks', { method: 'POST', ...init })
    expect([status, error?.code]).toEqual([413, 'RequestEntityTooLarge'])
  })

  it('a client that sends such a body whole before it reads gets the answer, and may ask again on the same connection', async () => {
    const socket = connect(server.port, '127.0.0.1')
    let answers = ''
    socket.on('data', (data) => {
      answers += String(data)
    })
    const head = `Host: 127.0.0.1:${server.port}\r\nAuthorization: Bearer secret\r\n`
    const length = 17 * 1024 * 1024
    const sent = new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      const headers = `${head}Content-Type: application/json\r\nContent-Length: ${length}\r\n`
      socket.write(`POST /tasks HTTP/1.1\r\n${headers}\r\n`)
      socket.write('x'.repeat(length), (error) => (error ? reject(error) : resolve()))
    })
    await sent
    await expect.poll(() => answers).toMatch(/^HTTP\/1.1 413 [\s\S]*RequestEntityTooLarge/)
    socket.write(`GET /tasks HTTP/1.1\r\n${head}\r\n`)
    await expect.poll(() => answers).toMatch(/HTTP\/1.1 200 /)
    socket.destroy()
  })

  it.each([{ accept: 'image/png' }, { accept: ';;,,q=x' }, { accept: '' }])(
    'an Accept header of "$accept" gets the one format there is',
    async ({ accept }) => {
      expect((await call('/tasks', { headers: { accept } })).status).toBe(200)
      expect((await call('/tasks/task-b/events', { headers: { accept } })).headers.get('content-type')).toContain(
        'ndjson',
      )
    },
  )
})

describe('what is not HTTP is refused in the same words', () => {
  it.each([
    { what: 'noise', text: '\u0000\u0001\u0002\r\n\r\n', status: 400 },
    {
      what: 'two lengths',
      text: `POST /tasks HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
      status: 400,
    },
    {
      what: 'a header without end',
      text: `GET /tasks HTTP/1.1\r\nHost: a\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`,
      status: 431,
    },
    { what: 'a host that is none', text: 'GET /healthz HTTP/1.1\r\nHost: a b/\r\n\r\n', status: 400 },
    { what: 'an address without a slash', text: 'GET nothing HTTP/1.1\r\nHost: a\r\n\r\n', status: 400 },
    { what: 'an address of another scheme', text: 'GET ftp://x/y HTTP/1.1\r\nHost: a\r\n\r\n', status: 400 },
  ])('$what', async ({ text, status }) => {
    expect(await raw(text)).toEqual({ status, code: 'BadRequest' })
  })

  it('two tokens are not a way in', async () => {
    const text =
      'GET /tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer no\r\nAuthorization: Bearer secret\r\nConnection: close\r\n\r\n'
    expect(await raw(text)).toEqual({ status: 401, code: 'Unauthorized' })
  })
})
