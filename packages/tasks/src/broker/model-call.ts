import { costOf, type PriceTable, type Provider, type TokenUsage } from '@corral/agents'
import { clipText, type ModelCallEvent } from '@corral/protocol'

/** What the broker knows of a call when it is over. */
export interface FinishedCall {
  provider: Provider
  status: number
  durationMs: number
  firstByteMs?: number | undefined
  usage?: TokenUsage | undefined
  /** The model that was asked for, where the answer did not name one. */
  model?: string | undefined
  isEstimated?: boolean | undefined
  retries?: number | undefined
  error?: string | undefined
  code?: string | undefined
}

/** A call as it is kept with the task. `prices` are the provider's, with what the platform's own file says. */
export function modelCallEvent(call: FinishedCall, prices: PriceTable): ModelCallEvent {
  const { usage } = call
  const model = usage?.model ?? call.model
  const cost = usage && model ? costOf(usage, model, prices) : undefined
  return {
    type: 'model_call',
    provider: call.provider.name,
    status: call.status,
    duration_ms: Math.max(0, Math.round(call.durationMs)),
    input_tokens: usage?.inputTokens ?? 0,
    output_tokens: usage?.outputTokens ?? 0,
    cache_read_tokens: usage?.cacheReadTokens ?? 0,
    cache_write_tokens: usage?.cacheWriteTokens ?? 0,
    ...(model ? { model: clipText(model, 200) } : {}),
    ...(call.firstByteMs === undefined ? {} : { first_byte_ms: Math.max(0, Math.round(call.firstByteMs)) }),
    ...(cost === undefined ? {} : { cost_usd: cost }),
    ...(call.isEstimated ? { estimated: true } : {}),
    ...(call.retries ? { retries: call.retries } : {}),
    ...(call.error ? { error: clipText(call.error, 2_000) } : {}),
    ...(call.code ? { code: call.code } : {}),
  }
}
