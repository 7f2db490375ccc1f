import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { endpointProvider, findProvider } from '@corral/agents'
import { silentLogger } from '@corral/ports'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Broker, type BrokerOptions, startBroker, targetOf } from './broker.js'
import type { BrokeredTask } from './brokered-task.js'
import { type FinishedCall, modelCallEvent } from './model-call.js'
import { createProviderHolds, type ProviderHolds, retryAfterMs } from './provider-holds.js'
import { createTaskTokens } from './task-token.js'

const anthropic = findProvider('anthropic')!
const openai = findProvider('openai')!
const google = findProvider('google')!
const tokens = createTaskTokens('platform secret')
const realKey = 'sk-ant-real-key'
const nothingSpent = { tokens: 0, costUsd: 0 }

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

const start =
  'event: message_start\ndata: {"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":11,"output_tokens":1}}}\n\n'
const delta = 'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"12345678"}}\n\n'
const end = 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":7}}\n\n'
const stream = { 'content-type': 'text/event-stream', 'request-id': 'r1' }
const whole: Answer = (_, response) => void response.writeHead(200, stream).end(start + end)

let model: Server
let broker: Broker
let seen: { headers: Record<string, unknown>; url: string; body: string }[]
let calls: FinishedCall[]
let task: BrokeredTask | undefined
let key: string | undefined
let answers: Answer[]
let holds: ProviderHolds

const modelUrl = (): string => `http://127.0.0.1:${(model.address() as AddressInfo).port}`

async function startWith(options: Partial<BrokerOptions> = {}): Promise<void> {
  await broker?.close()
  broker = await startBroker({
    tokens,
    findTask: async (uid) => (task?.uid === uid ? task : undefined),
    findKey: async () => key,
    baseUrlOf: () => `${modelUrl()}/base`,
    recordCall: (_, call) => calls.push(call),
    holds,
    patience: { firstWaitMs: 5, drainMs: 200 },
    port: 0,
    log: silentLogger,
    ...options,
  })
}

beforeEach(async () => {
  seen = []
  calls = []
  answers = []
  key = realKey
  task = { uid: 'uid-1', provider: anthropic, spent: nothingSpent }
  holds = createProviderHolds({ now: Date.now })
  model = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      seen.push({ headers: request.headers, url: request.url ?? '', body })
      ;(answers.shift() ?? whole)(request, response, body)
    })
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  await startWith()
})

afterEach(async () => {
  await broker.close()
  model.closeAllConnections()
  await new Promise((resolve) => model.close(resolve))
})

const call = (init: RequestInit & { path?: string } = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${broker.port}${init.path ?? '/v1/messages?beta=true'}`, {
    method: 'POST',
    body: '{"model":"claude-x"}',
    ...init,
    headers: { authorization: `Bearer ${tokens.issue('uid-1')}`, 'anthropic-version': '2023-06-01', ...init.headers },
  })
const recorded = () => calls.map((each) => modelCallEvent(each, each.provider.prices))

it('adds the real key, takes the task token away and passes the rest on', async () => {
  const response = await call()
  await response.text()
  expect(response.headers.get('request-id')).toBe('r1')
  expect(seen[0]).toMatchObject({ url: '/base/v1/messages?beta=true', body: '{"model":"claude-x"}' })
  expect(seen[0]?.headers['x-api-key']).toBe(realKey)
  expect(seen[0]?.headers.authorization).toBeUndefined()
  expect(seen[0]?.headers['accept-encoding']).toBeUndefined()
  expect(seen[0]?.headers['anthropic-version']).toBe('2023-06-01')
})

it.each([
  { provider: google, header: 'x-goog-api-key', path: '/v1beta/models/m:streamGenerateContent?alt=sse' },
  { provider: openai, header: 'authorization', path: '/v1/responses' },
])('finds the token of a client of $provider.name where such a client sends its key', async (row) => {
  task = { ...task!, provider: row.provider }
  const token = tokens.issue('uid-1')
  const value = row.header === 'authorization' ? `Bearer ${token}` : token
  const response = await fetch(`http://127.0.0.1:${broker.port}${row.path}`, {
    method: 'POST',
    body: '{}',
    headers: { [row.header]: value },
  })
  expect(response.status).toBe(200)
  await response.text()
  expect(seen[0]?.headers[row.header]).toBe(row.header === 'authorization' ? `Bearer ${realKey}` : realKey)
  expect(JSON.stringify(seen)).not.toContain(token)
})

it('an endpoint without a key is called without one', async () => {
  key = undefined
  task = { ...task!, provider: endpointProvider({ name: 'local', kind: 'openai', base_url: 'http://x/v1' }) }
  const response = await call({ path: '/v1/chat/completions' })
  expect(response.status).toBe(200)
  await response.text()
  expect(seen[0]?.headers.authorization).toBeUndefined()
  expect(seen[0]?.url).toBe('/base/v1/chat/completions')
})

it.each([
  { base: 'https://api.openai.com/v1', path: '/v1/responses', target: 'https://api.openai.com/v1/responses' },
  { base: 'http://h:1/v1/', path: '/v1/models', target: 'http://h:1/v1/models' },
  { base: 'https://api.anthropic.com', path: '/v1/messages?b=1', target: 'https://api.anthropic.com/v1/messages?b=1' },
  { base: 'http://h/proxy', path: '/v1/messages', target: 'http://h/proxy/v1/messages' },
  { base: 'http://h', path: '/', target: 'http://h/' },
])('$path at $base is $target', ({ base, path, target }) => {
  expect(targetOf(base, new URL(path, 'http://broker')).href).toBe(target)
})

it('streams bytes as they arrive: the first half is here before the second is sent', async () => {
  let finish: () => void = () => undefined
  answers = [
    (_, response) => {
      response.writeHead(200, stream).write(start)
      finish = () => response.end(end)
    },
  ]
  const reader = (await call()).body!.getReader()
  const first = new TextDecoder().decode((await reader.read()).value)
  expect(first).toBe(start)
  finish()
  let rest = ''
  for (let part = await reader.read(); !part.done; part = await reader.read())
    rest += new TextDecoder().decode(part.value)
  expect(rest).toBe(end)
})

describe('every call is recorded', () => {
  it('with model, tokens, status and duration, and nothing of what was said', async () => {
    await (await call()).text()
    await expect.poll(() => calls.length).toBe(1)
    expect(recorded()[0]).toMatchObject({
      type: 'model_call',
      provider: 'anthropic',
      model: 'claude-x',
      status: 200,
      input_tokens: 11,
      output_tokens: 7,
      duration_ms: expect.any(Number),
      first_byte_ms: expect.any(Number),
    })
    expect(recorded()[0]).not.toHaveProperty('estimated')
    expect(recorded()[0]).not.toHaveProperty('cost_usd')
  })

  it('a stream that breaks off breaks off for the agent, and its count is an estimate that says so', async () => {
    answers = [
      (_, response) => {
        response.writeHead(200, stream).write(start + delta)
        setImmediate(() => response.destroy())
      },
    ]
    await expect(call().then((response) => response.text())).rejects.toThrow('terminated')
    await expect.poll(() => calls.length).toBe(1)
    expect(recorded()[0]).toMatchObject({
      input_tokens: 11,
      output_tokens: 2,
      estimated: true,
      error: 'the answer broke off',
    })
  })

  it('an agent that hangs up is charged for the whole answer: the rest is read without it', async () => {
    let finish: () => void = () => undefined
    answers = [
      (_, response) => {
        response.writeHead(200, stream).write(start)
        finish = () => response.end(end)
      },
    ]
    await startWith({ patience: { drainMs: 60_000 } })
    const aborter = new AbortController()
    const response = await call({ signal: aborter.signal })
    await response.body!.getReader().read()
    aborter.abort()
    finish()
    await expect.poll(() => calls.length).toBe(1)
    expect(recorded()[0]).toMatchObject({ output_tokens: 7 })
    expect(recorded()[0]).not.toHaveProperty('estimated')
  })

  it('an answer that does not end after the agent hung up is let go and estimated', async () => {
    answers = [(_, response) => void response.writeHead(200, stream).write(start + delta)]
    const aborter = new AbortController()
    const response = await call({ signal: aborter.signal })
    await response.body!.getReader().read()
    aborter.abort()
    await expect.poll(() => calls.length).toBe(1)
    expect(recorded()[0]).toMatchObject({ estimated: true, output_tokens: 2 })
  })

  it('an error of the provider goes to the agent as it is and costs nothing', async () => {
    const body = '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'
    answers = [(_, response) => void response.writeHead(400, { 'content-type': 'application/json' }).end(body)]
    const response = await call()
    expect(response.status).toBe(400)
    expect(await response.text()).toBe(body)
    await expect.poll(() => calls.length).toBe(1)
    expect(recorded()[0]).toMatchObject({ status: 400, input_tokens: 0, model: 'claude-x' })
  })

  it('counting tokens and listing models are no calls', async () => {
    await (await call({ path: '/v1/messages/count_tokens' })).text()
    await (await call({ path: '/v1/models', method: 'GET', body: null })).text()
    await (await call()).text()
    await expect.poll(() => calls.length).toBe(1)
  })
})

describe('a provider that is busy', () => {
  const busy =
    (status: number, headers: Record<string, string> = {}): Answer =>
    (_, response) =>
      void response.writeHead(status, headers).end('{"error":{"type":"overloaded_error"}}')

  it.each([429, 529])('%i is waited for, and the same request asked again', async (status) => {
    answers = [busy(status), busy(status, { 'retry-after': '0' }), whole]
    const response = await call()
    expect(response.status).toBe(200)
    expect(await response.text()).toBe(start + end)
    expect(seen.map(({ body }) => body)).toEqual(Array(3).fill('{"model":"claude-x"}'))
    await expect.poll(() => calls.length).toBe(1)
    expect(recorded()[0]).toMatchObject({ status: 200, retries: 2, output_tokens: 7 })
  })

  it('holds new starts back until it answers again', async () => {
    let heldUntil: Date | undefined
    answers = [
      busy(429, { 'retry-after-ms': '20' }),
      (request, response, body) => {
        heldUntil = holds.heldUntil('anthropic') ?? new Date(0)
        whole(request, response, body)
      },
    ]
    await startWith({ holds: { ...holds, note: (name, ms) => holds.note(name, ms + 60_000) } })
    await (await call()).text()
    expect(heldUntil!.getTime()).toBeGreaterThan(Date.now())
    await expect.poll(() => holds.heldUntil('anthropic')).toBeUndefined()
  })

  it('one that asks for more time than a client waits is told to the agent, with the time', async () => {
    answers = [busy(429, { 'retry-after': '3600' })]
    const response = await call()
    expect(response.status).toBe(429)
    expect(response.headers.get('retry-after')).toBe('3600')
    await response.text()
    expect(seen).toHaveLength(1)
    expect(holds.heldUntil('anthropic')!.getTime() - Date.now()).toBeLessThanOrEqual(5 * 60_000)
  })

  it('an empty account is not waited for', async () => {
    task = { ...task!, provider: openai }
    answers = [(_, response) => void response.writeHead(429).end('{"error":{"code":"insufficient_quota"}}')]
    const response = await call({ path: '/v1/responses' })
    expect(response.status).toBe(429)
    expect(seen).toHaveLength(1)
    expect(holds.heldUntil('openai')).toBeUndefined()
  })

  it.each([
    { headers: { 'retry-after': '7' }, body: '', ms: 7_000 },
    { headers: { 'retry-after-ms': '250', 'retry-after': '7' }, body: '', ms: 250 },
    { headers: { 'retry-after': 'Thu, 01 Jan 1970 00:00:30 GMT' }, body: '', ms: 20_000 },
    { headers: { 'retry-after': 'soon' }, body: '', ms: undefined },
    { headers: {}, body: '{"retryDelay": "34s"}', ms: 34_000 },
    { headers: { 'retry-after': '99999999' }, body: '', ms: 86_400_000 },
  ])('reads $headers $body as $ms ms', ({ headers, body, ms }) => {
    expect(retryAfterMs(headers, body, 10_000)).toBe(ms)
  })
})

describe('it refuses', () => {
  it.each<[string, () => void, RequestInit & { path?: string }, number, RegExp]>([
    ['a call without a token', () => {}, { headers: { authorization: '' } }, 401, /no running task/],
    [
      'a forged token',
      () => {},
      { headers: { authorization: 'Bearer corral-task.uid-1.forged' } },
      401,
      /no running task/,
    ],
    ['the token of a task that does not run', () => (task = undefined), {}, 401, /no running task/],
    ['a route agents have no business with', () => {}, { path: '/v1/organizations' }, 403, /not open to sandboxes/],
    ['another method on an open route', () => {}, { method: 'DELETE', body: null }, 403, /not open to sandboxes/],
    ['the route of another provider', () => {}, { path: '/v1/responses' }, 403, /not open to sandboxes/],
    [
      'a task that spent its tokens',
      () => (task = { ...task!, spent: { tokens: 100, costUsd: 0 }, maxTokens: 100 }),
      {},
      403,
      /used 100 of its 100 tokens/,
    ],
    [
      'a task that spent its money',
      () => (task = { ...task!, spent: { tokens: 1, costUsd: 2 }, maxCostUsd: 1.5 }),
      {},
      403,
      /spent 2 of its 1.5 US dollars/,
    ],
    [
      'a task with a price limit whose model has no known price',
      () => (task = { ...task!, spent: { tokens: 1, costUsd: 0, unpricedModel: 'm' }, maxCostUsd: 1 }),
      {},
      403,
      /price of the model "m" is not known/,
    ],
    ['a call when no key is set', () => (key = undefined), {}, 401, /corral secret set anthropic/],
  ])('%s', async (_, arrange, init, status, says) => {
    arrange()
    const response = await call(init)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ type: 'error', error: { message: expect.stringMatching(says) } })
    expect(seen).toEqual([])
  })

  it.each(['//', 'http://[::1'])('the address %s, which is none, before it looks at anything else', async (address) => {
    const socket = connect(broker.port, '127.0.0.1')
    socket.end(`GET ${address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 [\s\S]*this is no address/)
  })

  it('a refusal for the budget is recorded as what ends the task', async () => {
    task = { ...task!, spent: { tokens: 100, costUsd: 0 }, maxTokens: 100 }
    await (await call()).text()
    expect(recorded()).toMatchObject([{ status: 403, code: 'BudgetExceeded', input_tokens: 0 }])
  })

  it('a task just below its limit may make one more call', async () => {
    task = { ...task!, spent: { tokens: 99, costUsd: 0.99 }, maxTokens: 100, maxCostUsd: 1 }
    expect((await call()).status).toBe(200)
  })

  it('more requests of one task than the pace allows, and none of another task for it', async () => {
    await startWith({
      maxRequestsPerMinute: 2,
      findTask: async (uid) => ({ uid, provider: anthropic, spent: nothingSpent }),
    })
    const statuses: number[] = []
    for (let count = 0; count < 5; count += 1) {
      const response = await call()
      statuses.push(response.status)
      if (response.status === 429) {
        expect(response.headers.get('retry-after')).toBe('5')
        expect(await response.text()).toContain('too many requests from this task')
      } else await response.text()
    }
    // A minute may begin in between, which opens the pace once more.
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(1)
    const other = await call({ headers: { authorization: `Bearer ${tokens.issue('uid-2')}` } })
    expect(other.status).toBe(200)
    expect(seen.length).toBe(statuses.filter((status) => status === 200).length + 1)
  })

  it.each(['declared', 'streamed'])('a body over the limit, %s, before it is at the provider', async (how) => {
    await startWith({ maxRequestBytes: 1_000 })
    const large = Buffer.alloc(5_000, 'x')
    const body =
      how === 'declared'
        ? large
        : new ReadableStream({
            start(controller) {
              controller.enqueue(large)
              controller.close()
            },
          })
    const response = await call({ body, duplex: 'half' } as RequestInit)
    expect(response.status).toBe(413)
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining('1000 bytes') } })
    expect(seen).toEqual([])
    const small = await call({ body: 'x'.repeat(1_000) })
    expect(small.status).toBe(200)
  })

  it('a WebSocket, so that the client goes on with a plain request', async () => {
    const socket = connect(broker.port, '127.0.0.1')
    socket.write('GET /v1/responses HTTP/1.1\r\nhost: b\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    expect(text).toMatch(/^HTTP\/1\.1 426 /)
    expect(seen).toEqual([])
  })
})

it('never tells a sandbox the key, not even in errors', async () => {
  await startWith({ baseUrlOf: () => 'http://127.0.0.1:1/' })
  const response = await call()
  expect(response.status).toBe(502)
  const text = await response.text()
  expect(text).toContain('could not be reached')
  expect(text).not.toContain(realKey)
  await expect.poll(() => calls.length).toBe(1)
  expect(recorded()[0]).toMatchObject({ status: 0, error: expect.stringContaining('it refuses connections') })
})

describe('a connection that the provider closes', () => {
  const hangUp: Answer = (request) => void request.socket.destroy()

  it('while a request is on its way over one that was kept costs nothing: it is sent again', async () => {
    answers = [whole, hangUp, whole]
    expect(await (await call()).text()).toBe(start + end)
    const response = await call()
    expect([response.status, await response.text()]).toEqual([200, start + end])
    expect(seen.map(({ body }) => body)).toEqual(Array.from({ length: 3 }, () => '{"model":"claude-x"}'))
    expect(calls.map(({ status }) => status)).toEqual([200, 200])
  })

  it('under a request that opened it ends the call: the provider may have taken it', async () => {
    answers = [hangUp, whole]
    const response = await call()
    expect(response.status).toBe(502)
    expect(await response.text()).toContain('could not be reached')
    expect(seen).toHaveLength(1)
  })

  it('twice ends the call', async () => {
    answers = [whole, hangUp, hangUp, whole]
    await (await call()).text()
    const response = await call()
    expect(response.status).toBe(502)
    expect(await response.text()).toContain('could not be reached: it closed the connection')
    expect(seen).toHaveLength(3)
  })
})

it('a token names one task and no other', () => {
  expect(tokens.verify(tokens.issue('uid-1'))).toBe('uid-1')
  expect(tokens.verify(tokens.issue('uid-1').replace('uid-1', 'uid-2'))).toBeUndefined()
  expect(createTaskTokens('other secret').verify(tokens.issue('uid-1'))).toBeUndefined()
})

it.each([
  { when: 'refuses connections', url: 'http://127.0.0.1:1', says: /127\.0\.0\.1:1 could not be reached: it refuses/ },
  {
    when: 'has a name nobody knows',
    url: 'http://model.invalid',
    says: /model\.invalid could not be reached: its name cannot be resolved/,
  },
])('names the provider to the agent and in the event when it $when', async ({ url, says }) => {
  await startWith({ baseUrlOf: () => url })
  const response = await fetch(`http://127.0.0.1:${broker.port}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokens.issue('uid-1')}` },
    body: '{}',
  })
  expect(response.status).toBe(502)
  expect(await response.text()).toMatch(says)
  await expect.poll(() => calls).toEqual([expect.objectContaining({ status: 0, error: expect.stringMatching(says) })])
})
