import type { AgentAdapter } from '@corral/agents'
import type { TaskEventBody } from '@corral/protocol'
import type { AgentTask, AgentTaskStatus, Logger, Stored } from '@corral/resources'
import type { EndReason } from '../agent-task/plan.js'
import type { StageCondition } from '../agent-task/stages.js'
import type { EventLog } from '../event-log/event-log.js'
import type { Repository } from '../repository/repository.js'
import type { SandboxSession } from '../sandbox/sandbox-session.js'
import type { Workspace } from '../sandbox/workspace.js'

/** Everything a step may touch. Steps keep no state of their own: what they did can be seen in sandbox, log and files. */
export interface StepContext {
  readonly task: Stored<AgentTask>
  /** Opens the line to the task's sandbox; closed by the runner when the step ends. */
  openSandbox(): Promise<SandboxSession>
  findWorkspace(): Promise<Workspace>
  /** Directory of the task outside every sandbox; exists. */
  readonly taskDirectory: string
  readonly adapter: AgentAdapter
  readonly repository: Repository
  readonly eventLog: EventLog
  readonly broker: { baseUrl: string; tokenFor(taskUid: string): string }
  /** Whether the platform holds a key for the agent's provider. */
  hasModelKey(): Promise<boolean>
  readonly signal: AbortSignal
  /** Why the agent is to be stopped, for `stop-agent`. */
  readonly reason: EndReason | undefined
  now(): Date
  readonly log: Logger
}

/** What a step found, to be recorded as a condition that has passed, with what else belongs into the status. */
export interface StepOutcome {
  condition: StageCondition
  reason: string
  message: string
  status?: Partial<AgentTaskStatus>
  events?: TaskEventBody[]
}

export type Step = (context: StepContext) => Promise<StepOutcome>

export const author: { name: string; email: string } = { name: 'Corral', email: 'corral@localhost' }

/** The branch a task's work goes to. */
export function branchOf(task: Stored<AgentTask>): string {
  return task.spec.newBranch ?? `corral/${task.metadata.name}`
}
