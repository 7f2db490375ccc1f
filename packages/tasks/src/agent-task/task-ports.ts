import type { Clock, Logger } from '@corral/ports'
import type { AgentTask, AgentTaskStatus, Stored } from '@corral/resources'
import type { TaskClient } from '../places/place-client.js'
import type { TaskRecords } from '../records/task-records.js'
import type { StepOutcome } from '../steps/step.js'
import type { EndReason } from '../task-state/ending.js'
import type { StepName } from './plan.js'
import type { StepRunner } from './step-runner.js'

/** The outer edges of the task reconciler. */
export interface TaskPorts {
  client: TaskClient
  /** These ports as a task sees them whose sandbox is elsewhere; undefined where its provider is gone. */
  at(task: Stored<AgentTask>): Promise<TaskPorts | undefined>
  /** The provider of the sandbox, where it is not the cluster that keeps the task. */
  provider: string | undefined
  /** The pool of tasks that name none, made where it has to be. */
  ensurePool(): Promise<string>
  records: Pick<TaskRecords, 'events' | 'remove'>
  /** Begins to fetch the repository of a task beside its claim. */
  fetchAhead?(task: Stored<AgentTask>): void
  steps: StepRunner
  runStep(
    step: StepName,
    task: Stored<AgentTask>,
    end: { reason: EndReason | undefined; message: string | undefined },
    signal: AbortSignal,
    progress: () => void,
  ): Promise<StepOutcome>
  /** Whether the concurrency limit has room for this waiting task. */
  mayStart(uid: string): boolean
  /** Whether a task waits for a place of the concurrency limit and there is none. */
  isPlaceWanted(): boolean
  /** Whether more sandboxes are held for follow-ups than may be, and this ended task's is to go. */
  isHeldOverLimit(uid: string): boolean
  /** What the broker counted for the task, priced. */
  usageOf(uid: string): Promise<AgentTaskStatus['usage'] | undefined>
  /** Why the broker refused a call for the task's budget; undefined where it refused none. */
  budgetRefusalOf(uid: string): Promise<string | undefined>
  finished(task: Stored<AgentTask>, code: string): void
  /** Whether nodes let a task reach addresses by name. */
  hasEgressByName: boolean
  /** The isolation tier sandboxes run on, where the platform knows it. */
  isolation: string | undefined
  clock: Clock
  log: Logger
}
