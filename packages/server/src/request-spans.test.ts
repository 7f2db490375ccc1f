import { type SpanSink, silentLogger } from '@corral/ports'
import { CorralError } from '@corral/protocol'
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createApp } from './app.js'

type Span = Parameters<SpanSink>[0]
const trace = 'a'.repeat(32)
const parent = 'b'.repeat(16)
const authorization = 'Bearer secret'

/** A platform whose tasks are created, and fail to be cancelled. */
function platform({ hasSpans = true, demo = undefined as object | undefined } = {}) {
  const spans: Span[] = []
  const origins: { traceparent?: string | undefined }[] = []
  const logged: unknown[] = []
  const app = createApp({
    tasks: {
      create: async (_request: unknown, origin: { traceparent?: string }) => {
        origins.push(origin)
        return { task: { id: 'task-b', status: 'QUEUED' }, isReplay: false }
      },
      list: async () => ({ tasks: [] }),
      cancel: () => Promise.reject(new Error('disk')),
      get: () => Promise.reject(new CorralError('NotFound', 'no')),
    } as never,
    platform: { demo: async () => demo, settings: {} } as never,
    token: 'secret',
    isReady: () => true,
    registry: new Registry(),
    version: '1',
    log: { ...silentLogger, error: (text, fields) => void logged.push([text, fields]) },
    ...(hasSpans ? { spans: (span: Span) => void spans.push(span) } : {}),
  })
  const send = (request: string, headers: Record<string, string> = {}, body?: object) => {
    const [method = '', path = ''] = request.split(' ')
    const sent = body ? { body: JSON.stringify(body) } : {}
    return app.request(path, {
      method,
      headers: { authorization, 'content-type': 'application/json', ...headers },
      ...sent,
    })
  }
  return { app, spans, origins, logged, send }
}
const task = { repo: '/r', task: 't' }

describe('the trace of a request', () => {
  it('is a span with the route, below the span of the caller, that the task goes on from', async () => {
    const { spans, origins, send } = platform()
    await send('POST /tasks', { traceparent: `00-${trace}-${parent}-01` }, task)
    expect(spans).toEqual([
      {
        traceId: trace,
        spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
        parentId: parent,
        kind: 'server',
        name: 'POST /tasks',
        startMs: expect.any(Number),
        endMs: expect.any(Number),
        attributes: { 'http.request.method': 'POST', 'http.route': '/tasks', 'http.response.status_code': 201 },
      },
    ])
    expect(origins[0]?.traceparent).toBe(`00-${trace}-${spans[0]?.spanId}-01`)
    expect(spans[0]?.endMs).toBeGreaterThanOrEqual(spans[0]?.startMs ?? Number.NaN)
  })

  it('begins with the request where the caller has none', async () => {
    const { spans, origins, send } = platform()
    await send('POST /tasks', {}, task)
    expect(spans).toHaveLength(1)
    expect(spans[0]).not.toHaveProperty('parentId')
    expect(origins[0]?.traceparent).toBe(`00-${spans[0]?.traceId}-${spans[0]?.spanId}-01`)
  })

  it('names the pattern of the route, and the failure of the platform', async () => {
    const { spans, send, logged } = platform()
    expect((await send('POST /tasks/task-b/cancel')).status).toBe(500)
    expect(spans[0]).toMatchObject({ name: 'POST /tasks/:id/cancel', error: '500' })
    expect(logged).toEqual([
      ['request failed', { method: 'POST', path: '/tasks/task-b/cancel', error: new Error('disk') }],
    ])
  })

  it('tells no mistake of the client as a failure', async () => {
    const { spans, send, logged } = platform()
    expect((await send('POST /tasks', {}, {})).status).toBe(422)
    expect(spans[0]).not.toHaveProperty('error')
    expect(logged).toEqual([])
  })

  it.each([
    { what: 'a page that reads', request: 'GET /tasks', headers: {} },
    { what: 'a head', request: 'HEAD /tasks', headers: {} },
    {
      what: 'a caller that is not sampled',
      request: 'POST /tasks',
      headers: { traceparent: `00-${trace}-${parent}-00` },
    },
  ])('is not kept of $what', async ({ request, headers }) => {
    const { spans, send } = platform()
    await send(request, headers, request.startsWith('POST') ? task : undefined)
    expect(spans).toEqual([])
  })

  it.each([
    { flags: '00', hasSpans: true },
    { flags: '01', hasSpans: false },
    { flags: '00', hasSpans: false },
  ])('of a caller goes on as it is with flags $flags where spans are kept: $hasSpans', async ({ flags, hasSpans }) => {
    const { origins, send } = platform({ hasSpans })
    await send('POST /tasks', { traceparent: `00-${trace}-${parent}-${flags}` }, task)
    expect(origins).toEqual([{ traceparent: `00-${trace}-${parent}-${flags}` }])
  })

  it.each([
    { what: 'a body of no known length', headers: {} },
    { what: 'the content type of curl -d', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    { what: 'a body of a known length', headers: { 'content-length': String(JSON.stringify(task).length) } },
  ])('reaches the task of a request with $what', async ({ headers }) => {
    const { origins, send } = platform({ hasSpans: false })
    await send('POST /tasks', { ...headers, traceparent: `00-${trace}-${parent}-01` }, task)
    expect(origins).toEqual([{ traceparent: `00-${trace}-${parent}-01` }])
  })

  it('is none where neither side has one', async () => {
    const { origins, send } = platform({ hasSpans: false })
    await send('POST /tasks', {}, task)
    expect(origins).toEqual([{ traceparent: undefined }])
  })
})

describe('the cookie of a browser that signs in', () => {
  it.each([
    { over: 'HTTP', url: 'http://localhost/session', headers: {}, isSecure: false },
    { over: 'HTTPS', url: 'https://localhost/session', headers: {}, isSecure: true },
    {
      over: 'a proxy with HTTPS',
      url: 'http://localhost/session',
      headers: { 'x-forwarded-proto': 'https' },
      isSecure: true,
    },
    {
      over: 'a proxy with HTTP',
      url: 'http://localhost/session',
      headers: { 'x-forwarded-proto': 'http' },
      isSecure: false,
    },
  ])('is for HTTPS alone: $isSecure over $over', async ({ url, headers, isSecure }) => {
    const { app } = platform()
    const body = JSON.stringify({ token: 'secret' })
    const type = { 'content-type': 'application/json' }
    const answer = await app.request(url, { method: 'POST', body, headers: { ...type, ...headers } })
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect([answer.status, cookie.replace(/^corral_session_\w{8}=[\w.-]+; /, '')]).toEqual([
      204,
      `Path=/; HttpOnly; SameSite=Strict; Max-Age=43200${isSecure ? '; Secure' : ''}`,
    ])
  })

  it('is emptied when the browser signs out', async () => {
    const answer = await platform().send('DELETE /session')
    expect(answer.headers.get('set-cookie')).toMatch(/^corral_session_\w{8}=; Path=\/; .*; Max-Age=0$/)
  })
})

describe('the demo', () => {
  it('is a task on a repository of the platform', async () => {
    const answer = await platform({ demo: task }).send('POST /demo')
    expect([answer.status, await answer.json()]).toEqual([201, { id: 'task-b', status: 'QUEUED' }])
  })

  it('is not there where the platform takes no repositories of its disk', async () => {
    const answer = await platform().send('POST /demo')
    expect([answer.status, await answer.json()]).toEqual([
      404,
      {
        error: {
          code: 'NotFound',
          message: 'this platform takes no repositories of its own disk, so it has no demo',
          hint: 'Create a task on a repository of yours.',
        },
      },
    ])
  })
})
