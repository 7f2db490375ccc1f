import type { ModelCallEvent, Usage } from '@corral/protocol'
import type { AgentTaskStatus } from '@corral/resources'
import type { EventLog } from '../event-log/event-log.js'

type RecordedUsage = NonNullable<AgentTaskStatus['usage']>

/** What a task has spent so far, as its budget counts it. */
export interface Spent {
  /** Sent, cached or not, and received. */
  tokens: number
  /** Of the calls whose price is known. */
  costUsd: number
  /** A model that was used and has no known price. */
  unpricedModel?: string | undefined
}

/**
 * Every call of a model, as the broker saw it: kept as events of the task's log, so a restart loses nothing and the sum
 * can be made anew. What an agent says of itself is shown but never counted.
 */
export interface UsageRecord {
  add(uid: string, call: ModelCallEvent): Promise<void>
  /** The sum over all calls; undefined when there was none. One call without a known price leaves the cost out. */
  total(uid: string): Promise<RecordedUsage | undefined>
  spent(uid: string): Promise<Spent>
  /** Why a call was refused for the task's budget; undefined where none was. */
  budgetRefusal(uid: string): Promise<string | undefined>
  /** Forgets what it holds in memory of a task that has ended. */
  forget(uid: string): void
}

interface Sum {
  usage: RecordedUsage
  calls: number
  costUsd: number
  unpricedModel: string | undefined
  budgetRefusal: string | undefined
  /** The model named is the one that wrote most. */
  outputByModel: Map<string, number>
}

export function createUsageRecord(eventLog: EventLog): UsageRecord {
  const sums = new Map<string, Promise<Sum>>()

  const load = async (uid: string): Promise<Sum> => {
    const sum = emptySum()
    for await (const event of eventLog.read(uid)) {
      if (event.type === 'model_call') addCall(sum, event)
      // Logs of earlier releases hold the broker's counts as usage.
      else if (event.type === 'usage' && event.scope === 'delta' && (event as { source?: string }).source !== 'agent')
        addTo(sum, event)
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
    async add(uid, call) {
      addCall(await sumOf(uid), call)
      await eventLog.append(uid, [call])
    },
    async total(uid) {
      const sum = await sumOf(uid)
      if (sum.calls === 0) return undefined
      const model = [...sum.outputByModel].sort((left, right) => right[1] - left[1])[0]?.[0]
      const isPriced = sum.unpricedModel === undefined
      return { ...sum.usage, ...(model ? { model } : {}), ...(isPriced ? { costUsd: sum.costUsd } : {}) }
    },
    async spent(uid) {
      const { usage, costUsd, unpricedModel } = await sumOf(uid)
      const tokens = usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
      return { tokens, costUsd, unpricedModel }
    },
    async budgetRefusal(uid) {
      return (await sumOf(uid)).budgetRefusal
    },
    forget: (uid) => void sums.delete(uid),
  }
}

function emptySum(): Sum {
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
  return {
    usage,
    calls: 0,
    costUsd: 0,
    unpricedModel: undefined,
    budgetRefusal: undefined,
    outputByModel: new Map(),
  }
}

function addCall(sum: Sum, call: ModelCallEvent): void {
  if (call.code === 'BudgetExceeded') sum.budgetRefusal ??= call.error ?? 'the budget is used up'
  // A call that was refused or answered with an error used nothing, and so has no price to be unknown.
  if (call.input_tokens + call.output_tokens + call.cache_read_tokens + call.cache_write_tokens > 0) addTo(sum, call)
}

function addTo(sum: Sum, event: Usage): void {
  sum.calls += 1
  sum.usage.inputTokens += event.input_tokens
  sum.usage.outputTokens += event.output_tokens
  sum.usage.cacheReadTokens += event.cache_read_tokens
  sum.usage.cacheWriteTokens += event.cache_write_tokens
  if (event.model) sum.outputByModel.set(event.model, (sum.outputByModel.get(event.model) ?? 0) + event.output_tokens)
  if (event.cost_usd === undefined) sum.unpricedModel ??= event.model ?? 'unknown'
  else sum.costUsd = Math.round((sum.costUsd + event.cost_usd) * 1e6) / 1e6
}
