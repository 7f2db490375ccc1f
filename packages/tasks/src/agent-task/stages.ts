import type { AgentTask, Condition } from '@corral/resources'
import { findCondition } from '@corral/resources'

/** The stages of a task's life, in order, each recorded as a condition of the same name. */
export const stageConditions = [
  'Admitted',
  'SandboxReady',
  'RepositoryReady',
  'SetupDone',
  'AgentStarted',
  'AgentFinished',
  'ResultCollected',
  'Pushed',
] as const

export type StageCondition = (typeof stageConditions)[number]

/** The condition that ends a task: True or False, with the cause as its reason. Absent while it lives. */
export const endCondition = 'Succeeded'

export type TaskPhase = 'QUEUED' | 'PROVISIONING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'CANCELLED'

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

/** Admitted and not at its end: it holds a place of the concurrency limit. */
export function isActive(task: AgentTask): boolean {
  return hasPassed(task, 'Admitted') && !isFinished(task)
}

/** For people; the conditions are the truth. */
export function phaseOf(task: AgentTask): TaskPhase {
  const end = stage(task, endCondition)
  if (end?.status === 'True') return 'SUCCEEDED'
  if (end) return end.reason === 'Timeout' ? 'TIMED_OUT' : end.reason === 'Cancelled' ? 'CANCELLED' : 'FAILED'
  if (hasPassed(task, 'AgentStarted')) return 'RUNNING'
  return hasPassed(task, 'Admitted') ? 'PROVISIONING' : 'QUEUED'
}
