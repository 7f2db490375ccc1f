import type { KubeClient } from '@corral/kube'
import type { AgentTask, AgentTaskStatus, Clock, Logger, Stored } from '@corral/resources'
import type { EventLog } from '../event-log/event-log.js'
import type { StepOutcome } from '../steps/step.js'
import type { EndReason, StepName } from './plan.js'
import type { StepRunner } from './step-runner.js'

/** The outer edges of the task reconciler. */
export interface TaskPorts {
  client: Pick<KubeClient, 'find' | 'get' | 'create' | 'update' | 'updateStatus' | 'delete'>
  eventLog: EventLog
  steps: StepRunner
  runStep(
    step: StepName,
    task: Stored<AgentTask>,
    reason: EndReason | undefined,
    signal: AbortSignal,
  ): Promise<StepOutcome>
  /** Whether the concurrency limit has room for this waiting task. */
  mayStart(uid: string): boolean
  isStopping(): boolean
  /** What the broker counted for the task, priced. */
  usageOf(uid: string): Promise<AgentTaskStatus['usage'] | undefined>
  /** Log, bundles and artifacts of a task whose object is being deleted. */
  removeRecord(uid: string): Promise<void>
  finished(task: Stored<AgentTask>, code: string): void
  /** The isolation tier sandboxes run on, where the platform knows it. */
  isolation: string | undefined
  clock: Clock
  log: Logger
}
