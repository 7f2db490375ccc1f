import type { ModelCallEvent } from '@corral/protocol'
import { expect, it } from 'vitest'
import { memoryTaskRecords } from '../records/memory-task-records.js'
import { createUsageRecord } from './usage-record.js'

const uid = 'uid-1'
const call = (more: Partial<ModelCallEvent> = {}): ModelCallEvent => ({
  type: 'model_call',
  provider: 'p',
  model: 'm',
  status: 200,
  duration_ms: 5,
  input_tokens: 10,
  output_tokens: 5,
  cache_read_tokens: 2,
  cache_write_tokens: 1,
  cost_usd: 0.01,
  ...more,
})
const records = () => memoryTaskRecords({ now: () => new Date(0) })

it('the sum survives a restart: it is made anew from the log', async () => {
  const { events } = records()
  const first = createUsageRecord(events)
  await first.add(uid, call())
  await first.add(uid, call({ model: 'writer', output_tokens: 50 }))
  const sum = {
    model: 'writer',
    inputTokens: 20,
    outputTokens: 55,
    cacheReadTokens: 4,
    cacheWriteTokens: 2,
    costUsd: 0.02,
  }
  expect(await first.total(uid)).toEqual(sum)
  expect(await createUsageRecord(events).total(uid)).toEqual(sum)
  expect(await createUsageRecord(events).spent(uid)).toEqual({ tokens: 81, costUsd: 0.02, unpricedModel: undefined })
})

it.each(['total', 'delta'] as const)('what an agent claims to have used (%s) is not counted', async (scope) => {
  const { events } = records()
  const claimed = {
    type: 'usage',
    scope,
    input_tokens: 999,
    output_tokens: 999,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cost_usd: 99,
  } as const
  await events.append(uid, [claimed], 'agent')
  await createUsageRecord(events).add(uid, call())
  expect(await createUsageRecord(events).total(uid)).toMatchObject({ inputTokens: 10, outputTokens: 5, costUsd: 0.01 })
})

it('one call of unknown price leaves the cost out and is named to the budget; a refused call does not', async () => {
  const usage = createUsageRecord(records().events)
  const nothing = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }
  const { cost_usd: _, ...unpriced } = call({ ...nothing, status: 429 })
  await usage.add(uid, unpriced)
  expect(await usage.total(uid)).toBeUndefined()
  await usage.add(uid, call())
  expect(await usage.total(uid)).toMatchObject({ costUsd: 0.01 })
  const { cost_usd: __, ...unknown } = call({ model: 'new-model' })
  await usage.add(uid, unknown)
  expect(await usage.total(uid)).not.toHaveProperty('costUsd')
  expect(await usage.spent(uid)).toMatchObject({ costUsd: 0.01, unpricedModel: 'new-model' })
})

it('a refusal for the budget is remembered over a restart', async () => {
  const { events } = records()
  await createUsageRecord(events).add(uid, call({ status: 403, code: 'BudgetExceeded', error: 'used it all' }))
  expect(await createUsageRecord(events).budgetRefusal(uid)).toBe('used it all')
  expect(await createUsageRecord(events).budgetRefusal('uid-2')).toBeUndefined()
})

it('what earlier releases recorded as usage is counted, once and as it was priced', async () => {
  const { events } = records()
  const used = { input_tokens: 3, output_tokens: 4, cache_read_tokens: 0, cache_write_tokens: 0, cost_usd: 0.5 }
  await events.append(uid, [
    { type: 'usage', scope: 'delta', ...used },
    { type: 'usage', scope: 'total', ...used },
  ])
  const record = createUsageRecord(events)
  expect(await record.total(uid)).toEqual({
    ...{ inputTokens: 3, outputTokens: 4, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0.5 },
  })
})

it('a task that is forgotten is counted anew from its log', async () => {
  const { events } = records()
  const record = createUsageRecord(events)
  await record.add(uid, call())
  await events.append(uid, [call()])
  expect(await record.spent(uid)).toMatchObject({ tokens: 18 })
  record.forget(uid)
  expect(await record.spent(uid)).toMatchObject({ tokens: 36 })
})

it('a refusal without words, and a model without a name, are told all the same', async () => {
  const record = createUsageRecord(records().events)
  const { cost_usd: _cost, model: _model, ...unnamed } = call({ status: 403, code: 'BudgetExceeded' })
  await record.add(uid, unnamed as ModelCallEvent)
  expect(await record.budgetRefusal(uid)).toBe('the budget is used up')
  expect(await record.spent(uid)).toMatchObject({ unpricedModel: 'unknown' })
  await record.add(uid, call({ code: 'BudgetExceeded', error: 'later' }))
  expect(await record.budgetRefusal(uid)).toBe('the budget is used up')
})

it('another code is no refusal for the budget', async () => {
  const record = createUsageRecord(records().events)
  await record.add(uid, call({ status: 429, code: 'RateLimited', error: 'slower' }))
  expect(await record.budgetRefusal(uid)).toBeUndefined()
})

it('a log that cannot be read is read again at the next question', async () => {
  const { events } = records()
  await events.append(uid, [call()])
  let isAway = true
  const record = createUsageRecord({
    ...events,
    read: (...asked) => {
      if (isAway) throw new Error('away')
      return events.read(...asked)
    },
  })
  await expect(record.spent(uid)).rejects.toThrow('away')
  isAway = false
  expect(await record.spent(uid)).toMatchObject({ tokens: 18 })
})
