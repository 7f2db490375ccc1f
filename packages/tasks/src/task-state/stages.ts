import {
  type AgentTask,
  type Condition,
  taskEndCondition as endCondition,
  findCondition,
  type TaskStageCondition as StageCondition,
  type TaskPhase,
  taskInputCondition,
} from '@corral/resources'

export {
  type TaskStageCondition as StageCondition,
  taskEndCondition as endCondition,
  taskStageConditions as stageConditions,
} from '@corral/resources'

export function stage(task: AgentTask, type: StageCondition | typeof endCondition): Condition | undefined {
  return findCondition(task.status?.conditions ?? [], type)
}

export function hasPassed(task: AgentTask, type: StageCondition): boolean {
  return stage(task, type)?.status === 'True'
}

export function hasFailed(task: AgentTask, type: StageCondition): boolean {
  return stage(task, type)?.status === 'False'
}

export function isFinished(task: AgentTask): boolean {
  return stage(task, endCondition) !== undefined
}

/** The agent runs, ran, or may have been started: it is never started again in another sandbox. */
export function mayHaveStarted(task: AgentTask): boolean {
  return stage(task, 'AgentStarted') !== undefined
}

/** Admitted and not at its end: it holds a place of the concurrency limit. */
export function isActive(task: AgentTask): boolean {
  return hasPassed(task, 'Admitted') && !isFinished(task)
}

/** For people; the conditions are the truth. */
export function phaseOf(task: AgentTask): TaskPhase {
  const end = stage(task, endCondition)
  if (end?.status === 'True') return 'SUCCEEDED'
  if (end) return end.reason === 'Timeout' ? 'TIMED_OUT' : end.reason === 'Cancelled' ? 'CANCELLED' : 'FAILED'
  if (stage(task, 'PlanApproved')?.status === 'Unknown') return 'WAITING_APPROVAL'
  if (findCondition(task.status?.conditions ?? [], taskInputCondition)?.status === 'Unknown') return 'WAITING_INPUT'
  if (hasPassed(task, 'AgentStarted')) return 'RUNNING'
  return hasPassed(task, 'Admitted') ? 'PROVISIONING' : 'QUEUED'
}
