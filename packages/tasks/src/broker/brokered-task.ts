import type { Provider } from '@corral/agents'
import type { AgentTask, Stored } from '@corral/resources'
import { providerNameOf } from '../agent-spec.js'
import type { Spent, UsageRecord } from '../agent-task/usage-record.js'
import { isRepairing } from '../checks/check-plan.js'
import { hasPassed, isFinished } from '../task-state/stages.js'
import type { ModelProviders } from './model-providers.js'

/** What the broker asks about a task before it lets a request through. */
export interface BrokeredTask {
  uid: string
  provider: Provider
  spent: Spent
  maxTokens?: number | undefined
  maxCostUsd?: number | undefined
}

/** Whether a task may use a model at all: not before its agent runs and not after. */
export function mayUseModel(task: AgentTask): boolean {
  const isAgentThere = !hasPassed(task, 'AgentFinished') || isRepairing(task)
  return hasPassed(task, 'SetupDone') && isAgentThere && !isFinished(task)
}

/** The task as the broker knows it; undefined where it may use no model or has none. */
export async function brokeredTask(
  task: Stored<AgentTask> | undefined,
  { providers, usage }: { providers: Pick<ModelProviders, 'find'>; usage: Pick<UsageRecord, 'spent'> },
): Promise<BrokeredTask | undefined> {
  const name = task && mayUseModel(task) ? providerNameOf(task) : undefined
  const provider = name === undefined ? undefined : await providers.find(name)
  if (!task || !provider) return undefined
  const { uid } = task.metadata
  const { maxTokens, maxCostUsd } = task.spec.limits ?? {}
  return { uid, provider, spent: await usage.spent(uid), maxTokens, maxCostUsd }
}

export function hasBudget({ maxTokens, maxCostUsd }: Pick<BrokeredTask, 'maxTokens' | 'maxCostUsd'>): boolean {
  return maxTokens !== undefined || maxCostUsd !== undefined
}

/** Why a task may make no more calls; undefined while it may. */
export function overBudget({
  spent,
  maxTokens,
  maxCostUsd,
}: Omit<BrokeredTask, 'uid' | 'provider'>): string | undefined {
  if (maxTokens !== undefined && spent.tokens >= maxTokens)
    return `the task has used ${spent.tokens} of its ${maxTokens} tokens`
  if (maxCostUsd === undefined) return undefined
  if (spent.costUsd >= maxCostUsd) return `the task has spent ${spent.costUsd} of its ${maxCostUsd} US dollars`
  // Without a price the amount spent is unknown, and the budget could not stop it.
  if (spent.unpricedModel !== undefined)
    return `the price of the model "${spent.unpricedModel}" is not known, so max_cost_usd cannot be held; set max_tokens or add the price to prices.json`
  return undefined
}
