import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { silentLogger } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Broker, type BrokeredTask, startBroker } from './broker.js'
import { anthropic } from './provider.js'
import { createTaskTokens } from './task-token.js'
import type { TokenUsage } from './usage-meter.js'

const tokens = createTaskTokens('platform secret')
const realKey = 'sk-ant-real-key'
let model: Server
let broker: Broker
let seen: { headers: Record<string, unknown>; url: string; body: string }[]
let usage: TokenUsage[]
let task: BrokeredTask | undefined
let key: string | undefined
let releaseSecondHalf: () => void

beforeEach(async () => {
  seen = []
  usage = []
  key = realKey
  task = { uid: 'uid-1', provider: anthropic, spentTokens: 0 }
  const second = new Promise<void>((resolve) => {
    releaseSecondHalf = resolve
  })
  model = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      seen.push({ headers: request.headers, url: request.url ?? '', body })
      response.writeHead(200, { 'content-type': 'text/event-stream', 'request-id': 'r1' })
      response.write(
        'event: message_start\ndata: {"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":11,"output_tokens":1}}}\n\n',
      )
      const rest = 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":7}}\n\n'
      second.then(
        () => response.end(rest),
        (error: Error) => response.destroy(error),
      )
    })
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  broker = await startBroker({
    tokens,
    findTask: async (uid) => (task?.uid === uid ? task : undefined),
    findKey: async () => key,
    baseUrlOf: () => `http://127.0.0.1:${(model.address() as AddressInfo).port}/base`,
    recordUsage: (_, counted) => usage.push(counted),
    port: 0,
    log: silentLogger,
  })
})

afterEach(async () => {
  await broker.close()
  await new Promise((resolve) => model.close(resolve))
})

const call = (init: RequestInit & { path?: string } = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${broker.port}${init.path ?? '/v1/messages?beta=true'}`, {
    method: 'POST',
    body: '{"model":"claude-x"}',
    ...init,
    headers: { authorization: `Bearer ${tokens.issue('uid-1')}`, 'anthropic-version': '2023-06-01', ...init.headers },
  })

it('adds the real key, takes the task token away and passes the rest on', async () => {
  releaseSecondHalf()
  const response = await call()
  await response.text()
  expect(response.headers.get('request-id')).toBe('r1')
  expect(seen[0]).toMatchObject({ url: '/base/v1/messages?beta=true', body: '{"model":"claude-x"}' })
  expect(seen[0]?.headers['x-api-key']).toBe(realKey)
  expect(seen[0]?.headers.authorization).toBeUndefined()
  expect(seen[0]?.headers['anthropic-version']).toBe('2023-06-01')
})

it('streams bytes as they arrive: the first half is here before the second is sent', async () => {
  const response = await call()
  const reader = response.body!.getReader()
  const first = new TextDecoder().decode((await reader.read()).value)
  expect(first).toContain('message_start')
  expect(first).not.toContain('message_delta')
  releaseSecondHalf()
  let rest = ''
  for (let part = await reader.read(); !part.done; part = await reader.read())
    rest += new TextDecoder().decode(part.value)
  expect(rest).toContain('message_delta')
})

it('counts what the call cost', async () => {
  releaseSecondHalf()
  await (await call()).text()
  await expect
    .poll(() => usage)
    .toEqual([{ model: 'claude-x', inputTokens: 11, outputTokens: 7, cacheReadTokens: 0, cacheWriteTokens: 0 }])
})

describe('it refuses', () => {
  it.each<[string, () => void, RequestInit & { path?: string }, number]>([
    ['a call without a token', () => {}, { headers: { authorization: '' } }, 401],
    ['a forged token', () => {}, { headers: { authorization: 'Bearer corral-task.uid-1.forged' } }, 401],
    ['the token of a task that does not run', () => (task = undefined), {}, 401],
    ['a route agents have no business with', () => {}, { path: '/v1/organizations' }, 403],
    ['another method on an open route', () => {}, { method: 'DELETE', body: null }, 403],
    ['a task that spent its tokens', () => (task = { ...task!, spentTokens: 100, maxTokens: 100 }), {}, 403],
    ['a call when no key is set', () => (key = undefined), {}, 401],
  ])('%s', async (_, arrange, init, status) => {
    arrange()
    const response = await call(init)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ type: 'error' })
    expect(seen).toEqual([])
  })
})

it('never tells a sandbox the key, not even in errors', async () => {
  await new Promise((resolve) => model.close(resolve))
  const response = await call()
  expect(response.status).toBe(502)
  expect(await response.text()).not.toContain(realKey)
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
})

it('a token names one task and no other', () => {
  expect(tokens.verify(tokens.issue('uid-1'))).toBe('uid-1')
  expect(tokens.verify(tokens.issue('uid-1').replace('uid-1', 'uid-2'))).toBeUndefined()
  expect(createTaskTokens('other secret').verify(tokens.issue('uid-1'))).toBeUndefined()
})
