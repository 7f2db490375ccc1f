import { findProvider } from '@corral/agents'
import { expect, it } from 'vitest'
import { type FinishedCall, modelCallEvent } from './model-call.js'

const provider = findProvider('anthropic')!
const prices = { known: { asOf: '2026-01-01', input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } }
const usage = { inputTokens: 1000, outputTokens: 200, cacheReadTokens: 30, cacheWriteTokens: 4 }
const call: FinishedCall = { provider, status: 200, durationMs: 12.4 }
const counts = { input_tokens: 1000, output_tokens: 200, cache_read_tokens: 30, cache_write_tokens: 4 }
const none = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }
const head = { type: 'model_call', provider: 'anthropic', status: 200, duration_ms: 12 }

it.each<{ what: string; of: FinishedCall; event: object }>([
  { what: 'nothing is known of costs nothing and names no model', of: call, event: { ...head, ...none } },
  {
    what: 'a model with a price was used in has its cost',
    of: { ...call, usage: { ...usage, model: 'known' } },
    event: { ...head, ...counts, model: 'known', cost_usd: 0.006024 },
  },
  {
    what: 'does not say its model is priced by the one that was asked for',
    of: { ...call, usage, model: 'known' },
    event: { ...head, ...counts, model: 'known', cost_usd: 0.006024 },
  },
  {
    what: 'a model without a price was used in has no cost',
    of: { ...call, usage: { ...usage, model: 'other' } },
    event: { ...head, ...counts, model: 'other' },
  },
  { what: 'no model was named in has no cost', of: { ...call, usage }, event: { ...head, ...counts } },
  {
    what: 'a model was asked for and none answered has no cost',
    of: { ...call, status: 529, model: 'known', error: 'overloaded', code: 'Overloaded', retries: 2 },
    event: { ...head, ...none, status: 529, model: 'known', error: 'overloaded', code: 'Overloaded', retries: 2 },
  },
  {
    what: 'is estimated says so, with the time of its first byte',
    of: { ...call, usage: { ...usage, model: 'other' }, isEstimated: true, firstByteMs: 3.6, retries: 0 },
    event: { ...head, ...counts, model: 'other', estimated: true, first_byte_ms: 4 },
  },
  {
    what: 'a clock went backwards under took no time',
    of: { ...call, durationMs: -5, firstByteMs: -1 },
    event: { ...head, ...none, duration_ms: 0, first_byte_ms: 0 },
  },
])('a call that $what', ({ of, event }) => {
  expect(modelCallEvent(of, prices)).toEqual(event)
})
