import { findAgent } from '@corral/agents'
import type { AgentTask, AgentTaskStatus, Stored } from '@corral/resources'
import { hasPassed, isFinished } from '../agent-task/stages.js'
import type { BrokeredTask } from './broker.js'
import { providers } from './provider.js'

/** What the broker needs to know of a task; undefined while the task may not use a model: before it runs and after. */
export function brokeredTask(
  task: Stored<AgentTask>,
  spent: AgentTaskStatus['usage'] | undefined,
): BrokeredTask | undefined {
  const provider = providers.get(findAgent(task.spec.agent.name)?.provider ?? '')
  const runs = hasPassed(task, 'SetupDone') && !hasPassed(task, 'AgentFinished') && !isFinished(task)
  if (!provider || !runs) return undefined
  return { uid: task.metadata.uid, provider, spentTokens: spent ? spent.inputTokens + spent.outputTokens : 0 }
}
