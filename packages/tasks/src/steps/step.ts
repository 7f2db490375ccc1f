import type { AgentAdapter, AgentOptions, Provider } from '@corral/agents'
import type { Logger } from '@corral/ports'
import type { TaskEventBody } from '@corral/protocol'
import type { AgentTask, AgentTaskStatus, ConditionStatus, SandboxResources, Stored } from '@corral/resources'
import type { EndReason } from '../agent-task/deadline.js'
import type { StageCondition } from '../agent-task/stages.js'
import type { EnvironmentBuilds } from '../environment/build/environment-builds.js'
import type { PhaseNetwork } from '../environment/network-phase.js'
import type { PackageClients } from '../environment/package-clients.js'
import type { NetworkPhase } from '../environment/phase-egress.js'
import type { GrantedToRepository } from '../environment/task-environment.js'
import type { RefusalWatch } from '../environment/watch-refusals.js'
import type { EventLog } from '../event-log/event-log.js'
import type { TalkReport } from '../questions/question-status.js'
import type { TaskRecord } from '../records/task-records.js'
import type { Repository } from '../repository/repository.js'
import type { SandboxSession } from '../sandbox/sandbox-session.js'
import type { Workspace } from '../sandbox/workspace.js'

/** What work in a sandbox may touch, be it that of a task or a build, which is one without an agent. */
export interface SandboxContext {
  readonly task: Stored<AgentTask>
  /** Opens the connection to the task's sandbox; the runner closes it when the step ends. */
  openSandbox(): Promise<SandboxSession>
  findWorkspace(): Promise<Workspace>
  /** What is kept of the task outside every sandbox. */
  readonly record: TaskRecord
  readonly repository: Repository
  readonly eventLog: EventLog
  /** See `enterPhase`. */
  enterPhase(phase: NetworkPhase): Promise<PhaseNetwork>
  /** See `watchRefusals`. */
  watchRefusals(): RefusalWatch
  /** What the operator lets environment files of this repository open. */
  grantedTo(repository: string): Promise<GrantedToRepository>
  /** The limits the sandbox has by its template. */
  sandboxLimits(): Promise<SandboxResources>
  /** See `applyResources`; false where nodes know no such thing. */
  applyResources(resources: SandboxResources): Promise<boolean>
  /** See `applyImage`; false where nodes know no such thing. */
  applyImage(image: string): Promise<boolean>
  /** A secret of the platform, for set-up. */
  findSecret(name: string): Promise<string | undefined>
  /** How package clients reach the mirror, where the platform has one. */
  readonly packageClients: PackageClients | undefined
  /** What environments have built, where the platform keeps snapshots. */
  readonly environments: EnvironmentBuilds | undefined
  readonly signal: AbortSignal
  now(): Date
  readonly log: Logger
}

/** Everything a step may touch. Steps keep no state of their own: what they did can be seen in sandbox, log and files. */
export interface StepContext extends SandboxContext {
  /** What is kept of the task this one repeats. */
  readonly former: TaskRecord | undefined
  /** What is kept of the task this one goes on from. */
  readonly continued: TaskRecord | undefined
  /** That task itself; undefined where it is gone. */
  findFormer(): Promise<Stored<AgentTask> | undefined>
  /** What that task was asked for; undefined where it is gone. */
  findFormerPrompt(): Promise<string | undefined>
  readonly adapter: AgentAdapter
  /** What the task's spec says of the agent beside its name, checked by the adapter. */
  readonly agentOptions: AgentOptions
  readonly broker: { baseUrl: string; tokenFor(taskUid: string): string }
  /** Whose model the agent uses, and whether it can be called; undefined for an agent without a model. */
  findModel(): Promise<{ provider: Provider; isUsable: boolean } | undefined>
  /** Says that the step got on, so that failures before do not count. */
  progress(): void
  /** Says how the conversation with the agent stands; recorded while the step goes on. The last report counts. */
  report(report: TalkReport): void
  /** Calls back with the task whenever it has changed. Returns how to let go. */
  watchTask(onChange: (task: Stored<AgentTask>) => void): () => void
  /** The reason Kubernetes gives for the last end of the sandbox's container; undefined where it never ended. */
  whySandboxEnded(): Promise<string | undefined>
  /** Why the agent is to be stopped, for `stop-agent`. */
  readonly reason: EndReason | undefined
  /** The same in words, where the plan has them. */
  readonly endMessage?: string | undefined
}

/** What a step found, to be recorded as a condition that has passed, with what else belongs into the status. */
export interface StepOutcome {
  condition: StageCondition
  /** True where left out; Unknown for a stage that goes on. */
  conditionStatus?: ConditionStatus
  reason: string
  message: string
  status?: Partial<AgentTaskStatus>
  events?: TaskEventBody[]
}

export type Step = (context: StepContext) => Promise<StepOutcome>

/** The branch a task's work goes to. */
export function branchOf(task: Stored<AgentTask>): string {
  return task.spec.newBranch ?? `corral/${task.metadata.name}`
}
