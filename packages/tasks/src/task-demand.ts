import type { AgentTask } from '@corral/resources'
import { poolOf } from './agent-task/claim.js'
import { hasPassed, isActive, isFinished } from './task-state/stages.js'

/** How much work there is, for autoscalers of pools. */
export interface TaskDemand {
  /** Tasks that wait for a place. */
  readonly waiting: number
  /** Tasks that hold a place. */
  readonly running: number
  /** Tasks that want a sandbox of a pool and have none yet, those without a place among them. */
  readonly byPool: ReadonlyMap<string, number>
}

/** Counts it from the tasks as they are. Pure. */
export function taskDemand(tasks: readonly AgentTask[]): TaskDemand {
  const byPool = new Map<string, number>()
  for (const task of tasks) {
    const { name } = poolOf(task)
    const isWanting = !isFinished(task) && !hasPassed(task, 'SandboxReady')
    byPool.set(name, (byPool.get(name) ?? 0) + (isWanting ? 1 : 0))
  }
  return {
    waiting: tasks.filter((task) => !isFinished(task) && !hasPassed(task, 'Admitted')).length,
    running: tasks.filter(isActive).length,
    byPool,
  }
}
