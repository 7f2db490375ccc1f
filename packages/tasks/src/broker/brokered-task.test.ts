import { findProvider } from '@corral/agents'
import type { AgentTask, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { brokeredTask, mayUseModel, overBudget } from './brokered-task.js'

const anthropic = findProvider('anthropic')!
const condition = (type: string, status: 'True' | 'False' = 'True') => ({
  ...{ type, status, reason: 'Done', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
})

/** A task that has passed these stages. */
const task = (passed: string[], more: Partial<AgentTask['spec']> = {}): Stored<AgentTask> => ({
  apiVersion: 'corral.dev/v1alpha1',
  kind: 'AgentTask',
  metadata: {
    ...{ name: 't', namespace: 'n', uid: 'uid-1', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  },
  spec: { repository: { url: '/r' }, prompt: 'x', agent: { name: 'claude' }, ...more },
  status: { conditions: passed.map((type) => condition(type)) },
})
const before = ['Admitted', 'SandboxReady', 'RepositoryReady']
const running = [...before, 'SetupDone', 'AgentStarted']

describe('whether a task may use a model', () => {
  it.each([
    { when: 'set-up is done and the agent is about to start', passed: [...before, 'SetupDone'] },
    { when: 'its agent runs', passed: running },
  ])('it may when $when', ({ passed }) => {
    expect(mayUseModel(task(passed))).toBe(true)
  })

  it.each([
    { when: 'waits for its turn', passed: [] },
    { when: 'is being set up, by commands of the repository', passed: before },
    { when: 'has an agent that ended', passed: [...running, 'AgentFinished'] },
    { when: 'is over', passed: [...running, 'AgentFinished', 'ResultCollected', 'Pushed', 'Succeeded'] },
    { when: 'ended while its agent still ran', passed: [...running, 'Succeeded'] },
  ])('a task that $when may use no model', ({ passed }) => {
    expect(mayUseModel(task(passed))).toBe(false)
  })
})

describe('what the broker is told of a task', () => {
  const asked: string[] = []
  const ports = {
    providers: {
      find: async (name: string) => {
        asked.push(name)
        return name === 'anthropic' ? anthropic : undefined
      },
    },
    usage: { spent: async (uid: string) => ({ tokens: uid.length, costUsd: 0.5 }) },
  }

  it('its provider, its limits and what it has spent', async () => {
    const found = await brokeredTask(task(running, { limits: { maxTokens: 100, maxCostUsd: 2 } }), ports)
    const spent = { tokens: 5, costUsd: 0.5 }
    expect(found).toEqual({ uid: 'uid-1', provider: anthropic, spent, maxTokens: 100, maxCostUsd: 2 })
  })

  it.each([
    { when: 'there is no such task', asks: undefined },
    { when: 'it does not run', asks: task(before) },
    { when: 'its agent uses no model', asks: task(running, { agent: { name: 'command', command: 'true' } }) },
    { when: 'its endpoint is gone', asks: task(running, { agent: { name: 'claude', provider: 'gone' } }) },
  ])('nothing when $when', async ({ asks }) => {
    expect(await brokeredTask(asks, ports)).toBeUndefined()
  })

  it('no provider is looked up for a task that does not run', async () => {
    asked.length = 0
    await brokeredTask(task(before), ports)
    expect(asked).toEqual([])
  })
})

it.each([
  { has: 'no limits', spent: { tokens: 9e9, costUsd: 9e9, unpricedModel: 'm' }, limits: {}, says: undefined },
  { has: 'one token left', spent: { tokens: 99, costUsd: 0 }, limits: { maxTokens: 100 }, says: undefined },
  {
    has: 'used its tokens',
    spent: { tokens: 100, costUsd: 0 },
    limits: { maxTokens: 100 },
    says: /100 of its 100 tok/,
  },
  { has: 'a cent left', spent: { tokens: 9e9, costUsd: 0.99 }, limits: { maxCostUsd: 1 }, says: undefined },
  {
    has: 'spent its money',
    spent: { tokens: 1, costUsd: 1 },
    limits: { maxCostUsd: 1 },
    says: /1 of its 1 US dollars/,
  },
  {
    has: 'a limit of money and a model without a price',
    spent: { tokens: 1, costUsd: 0, unpricedModel: 'new' },
    limits: { maxCostUsd: 1 },
    says: /"new" is not known/,
  },
  {
    has: 'a limit of tokens and a model without a price',
    spent: { tokens: 1, costUsd: 0, unpricedModel: 'new' },
    limits: { maxTokens: 10 },
    says: undefined,
  },
])('a task that has $has: $says', ({ spent, limits, says }) => {
  const refusal = overBudget({ spent, ...limits })
  if (says) expect(refusal).toMatch(says)
  else expect(refusal).toBeUndefined()
})
