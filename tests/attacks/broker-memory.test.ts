import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findProvider } from '@corral/agents'
import { silentLogger } from '@corral/ports'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Broker, startBroker } from '../../packages/tasks/src/broker/broker.js'
import { createTaskTokens } from '../../packages/tasks/src/broker/task-token.js'

/** The broker keeps bodies to send them again while a provider is busy; a sandbox may have hundreds of calls under way. */
const provider = findProvider('anthropic')!
const tokens = createTaskTokens('platform secret')
const large = Buffer.alloc(15 * 1024 * 1024, ' ')

let model: Server
let broker: Broker
let arrived = 0
let answerAll: (() => void)[] = []
const asked = new Map<string, number>()

beforeAll(async () => {
  model = createServer((request, response) => {
    const name = String(request.headers['x-call'])
    asked.set(name, (asked.get(name) ?? 0) + 1)
    request.resume().on('end', () => {
      // Busy the first time, and only once all bodies are here: so they are all kept at one moment.
      if (asked.get(name) !== 1) return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      arrived += 1
      answerAll.push(() => response.writeHead(429, { 'retry-after': '0' }).end('{"error":{"type":"overloaded_error"}}'))
    })
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  broker = await startBroker({
    tokens,
    findTask: async (uid) => ({ uid, provider, spent: { tokens: 0, costUsd: 0 } }),
    findKey: async () => 'key',
    baseUrlOf: () => `http://127.0.0.1:${(model.address() as AddressInfo).port}`,
    recordCall: () => undefined,
    patience: { firstWaitMs: 5 },
    port: 0,
    log: silentLogger,
  })
})
afterAll(async () => {
  await broker.close()
  model.closeAllConnections()
  model.close()
})

async function callsAtOnce(names: readonly string[], uidOf: (name: string) => string): Promise<number[]> {
  arrived = 0
  answerAll = []
  asked.clear()
  const answers = names.map(async (name) => {
    const response = await fetch(`http://127.0.0.1:${broker.port}/v1/messages`, {
      method: 'POST',
      body: large,
      headers: { authorization: `Bearer ${tokens.issue(uidOf(name))}`, 'x-call': name },
    })
    await response.arrayBuffer()
    return response.status
  })
  await expect.poll(() => arrived, { timeout: 240_000 }).toBe(names.length)
  for (const answer of answerAll) answer()
  return await Promise.all(answers)
}

it('keeps no more than 64 MiB of one task to ask again, whatever it sends at once, and all of it for several tasks', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const one = await callsAtOnce(names, () => 'greedy')
  // Four of fifteen megabytes fit; the others are told that the provider is busy instead of being asked again.
  expect(one.sort()).toEqual([200, 200, 200, 200, 429, 429])
  // The control, which also shows that a call that is over gives its room back.
  expect(await callsAtOnce(names, (name) => `task-${name}`)).toEqual(Array(6).fill(200))
  expect((await callsAtOnce(['a', 'b', 'c', 'd'], () => 'greedy')).sort()).toEqual(Array(4).fill(200))
}, 300_000)
