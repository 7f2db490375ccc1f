import { costOf } from '@corral/agents'
import type { Usage } from '@corral/protocol'
import type { AgentTaskStatus } from '@corral/resources'
import type { TokenUsage } from '../broker/usage-meter.js'
import type { EventLog } from '../event-log/event-log.js'

type RecordedUsage = NonNullable<AgentTaskStatus['usage']>

/**
 * What tasks spend, as the broker counts it: kept as events of the task's log, so a restart loses nothing and the sum
 * can be made anew. What an agent says of itself is shown but never counted.
 */
export interface UsageRecord {
  add(uid: string, usage: TokenUsage): Promise<void>
  /** The sum over all calls; undefined when there was none. One call without a known price leaves the cost out. */
  total(uid: string): Promise<RecordedUsage | undefined>
}

interface Sum {
  usage: RecordedUsage
  calls: number
  pricedCalls: number
  /** The model named is the one that wrote most. */
  outputByModel: Map<string, number>
}

export function createUsageRecord(eventLog: EventLog): UsageRecord {
  const sums = new Map<string, Promise<Sum>>()

  const load = async (uid: string): Promise<Sum> => {
    const sum = emptySum()
    for await (const event of eventLog.read(uid)) {
      const counted =
        event.type === 'usage' && event.scope === 'delta' && (event as { source?: string }).source !== 'agent'
      if (counted) addTo(sum, event)
    }
    return sum
  }
  const sumOf = (uid: string): Promise<Sum> => {
    const known = sums.get(uid)
    if (known) return known
    const loading = load(uid)
    sums.set(uid, loading)
    loading.catch(() => sums.delete(uid))
    return loading
  }

  return {
    async add(uid, usage) {
      const sum = await sumOf(uid)
      const event = pricedUsage(usage)
      addTo(sum, event)
      await eventLog.append(uid, [{ type: 'usage', scope: 'delta', ...event }])
    },
    async total(uid) {
      const sum = await sumOf(uid)
      if (sum.calls === 0) return undefined
      const model = [...sum.outputByModel].sort((left, right) => right[1] - left[1])[0]?.[0]
      const { costUsd, ...counts } = sum.usage
      const isPriced = sum.pricedCalls === sum.calls && costUsd !== undefined
      return { ...counts, ...(model ? { model } : {}), ...(isPriced ? { costUsd } : {}) }
    },
  }
}

function emptySum(): Sum {
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
  return { usage, calls: 0, pricedCalls: 0, outputByModel: new Map() }
}

function addTo(sum: Sum, event: Usage): void {
  sum.calls += 1
  sum.usage.inputTokens += event.input_tokens
  sum.usage.outputTokens += event.output_tokens
  sum.usage.cacheReadTokens += event.cache_read_tokens
  sum.usage.cacheWriteTokens += event.cache_write_tokens
  if (event.model) sum.outputByModel.set(event.model, (sum.outputByModel.get(event.model) ?? 0) + event.output_tokens)
  if (event.cost_usd === undefined) return
  sum.pricedCalls += 1
  sum.usage.costUsd = Math.round(((sum.usage.costUsd ?? 0) + event.cost_usd) * 1e6) / 1e6
}

function pricedUsage(usage: TokenUsage): Usage {
  const counts = {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_read_tokens: usage.cacheReadTokens,
    cache_write_tokens: usage.cacheWriteTokens,
  }
  const cost = usage.model ? costOf(counts, usage.model) : undefined
  return {
    ...(usage.model ? { model: usage.model } : {}),
    ...counts,
    ...(cost === undefined ? {} : { cost_usd: cost }),
  }
}
