import type { AgentTask, Stored, TaskMode } from '@corral/resources'
import type { RecordPart } from '../records/task-records.js'

/**
 * The run of the agent a task is at. A task has one, but for a plan: every planning is a run of its own, and carrying the
 * plan out is the last one.
 */
export interface AgentRun {
  number: number
  mode: TaskMode
  /** Events of the agent in the log that are of earlier runs. */
  eventsBefore: number
  /** What earlier runs used of the timeout. */
  usedMs: number
}

export function agentRunOf({ spec, status }: AgentTask): AgentRun {
  return status?.run ?? { number: 1, mode: spec.mode ?? 'work', eventsBefore: 0, usedMs: 0 }
}

/** Names the run in names of questions and files. */
export function runKeyOf(task: AgentTask): string {
  return String(agentRunOf(task).number)
}

/** The id of the run's process in the sandbox: however often it is started, there is one. */
export function processIdOf(task: Stored<AgentTask>): string {
  const { number } = agentRunOf(task)
  return number === 1 ? task.metadata.uid : `${task.metadata.uid}.run-${number}`
}

/** Where the raw output of a run is kept. */
export function logPartOf(run: number): RecordPart {
  return run === 1 ? 'agent-log' : `run/${run}`
}
