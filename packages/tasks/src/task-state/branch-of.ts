import type { AgentTask, Stored } from '@corral/resources'

/** The branch a task's work goes to. */
export function branchOf(task: Stored<AgentTask>): string {
  return task.spec.newBranch ?? `corral/${task.metadata.name}`
}
