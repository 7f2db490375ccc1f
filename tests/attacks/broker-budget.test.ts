import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findProvider } from '@corral/agents'
import { silentLogger } from '@corral/ports'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { type Broker, startBroker } from '../../packages/tasks/src/broker/broker.js'
import { createTaskTokens } from '../../packages/tasks/src/broker/task-token.js'

/** What a call costs is known when it is over: an agent could begin hundreds before the first one is. */
const provider = findProvider('anthropic')!
const tokens = createTaskTokens('platform secret')
const usage = { input_tokens: 60, output_tokens: 40 }

let model: Server
let broker: Broker
let held: ServerResponse[] = []
let arrived = 0
let isHolding = true
/** Undefined: the task has no budget. */
let maxTokens: number | undefined
let spentTokens = 0
let refusals = 0

beforeAll(async () => {
  model = createServer((request, response) => {
    request.resume().on('end', () => {
      arrived += 1
      held.push(response)
      if (!isHolding) answerHeld()
    })
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  broker = await startBroker({
    tokens,
    findTask: async (uid) => ({ uid, provider, spent: { tokens: spentTokens, costUsd: 0 }, maxTokens }),
    findKey: async () => 'key',
    baseUrlOf: () => `http://127.0.0.1:${(model.address() as AddressInfo).port}`,
    recordCall: (_uid, call) => {
      if (call.code === 'BudgetExceeded') refusals += 1
      spentTokens += (call.usage?.inputTokens ?? 0) + (call.usage?.outputTokens ?? 0)
    },
    port: 0,
    log: silentLogger,
  })
})
afterAll(async () => {
  await broker.close()
  model.closeAllConnections()
  model.close()
})
beforeEach(() => {
  held = []
  isHolding = true
  arrived = 0
  spentTokens = 0
  refusals = 0
})

async function call(signal?: AbortSignal): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${broker.port}/v1/messages`, {
    method: 'POST',
    body: '{"model":"claude-sonnet-4-5"}',
    headers: { authorization: `Bearer ${tokens.issue('task')}` },
    ...(signal ? { signal } : {}),
  })
  await response.arrayBuffer()
  return response.status
}

function answerHeld(): void {
  for (const response of held.splice(0))
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ type: 'message', model: 'claude-sonnet-4-5', usage }))
}

const until = (count: number): Promise<void> =>
  expect.poll(() => arrived, { timeout: 240_000 }).toBeGreaterThanOrEqual(count)

it('a hundred calls at once pass a budget of one call by what eight calls cost, not by what a hundred do', async () => {
  maxTokens = 100
  const calls = Array.from({ length: 100 }, () => call())
  await until(8)
  isHolding = false
  answerHeld()
  const statuses = await Promise.all(calls)
  expect(statuses.filter((status) => status === 200)).toHaveLength(8)
  expect(statuses.filter((status) => status === 403)).toHaveLength(92)
  expect({ arrived, spentTokens, refusals }).toEqual({ arrived: 8, spentTokens: 800, refusals: 92 })
}, 300_000)

it('calls that wait for their turn within the budget are all answered, also after clients that went away', async () => {
  maxTokens = 1_000_000
  const first = Array.from({ length: 8 }, () => call())
  await until(8)
  const gone = new AbortController()
  const left = call(gone.signal).catch(() => 'left')
  const later = Array.from({ length: 8 }, () => call())
  gone.abort()
  expect(await left).toBe('left')
  answerHeld()
  expect(await Promise.all(first)).toEqual(Array(8).fill(200))
  await until(16)
  answerHeld()
  expect(await Promise.all(later)).toEqual(Array(8).fill(200))
}, 300_000)

it('a task without a budget has as many calls under way as it makes', async () => {
  maxTokens = undefined
  const calls = Array.from({ length: 30 }, () => call())
  await until(30)
  answerHeld()
  expect(await Promise.all(calls)).toEqual(Array(30).fill(200))
}, 300_000)
