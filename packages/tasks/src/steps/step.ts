import type { AgentAdapter, AgentOptions, Provider } from '@corral/agents'
import type { TaskEventBody } from '@corral/protocol'
import type { AgentTask, AgentTaskStatus, ConditionStatus, Stored } from '@corral/resources'
import type { SandboxContext } from '../environment/sandbox-context.js'
import type { TalkReport } from '../questions/question-status.js'
import type { TaskRecord } from '../records/task-records.js'
import type { EndReason } from '../task-state/ending.js'
import type { StageCondition } from '../task-state/stages.js'

/** Everything a step may touch. Steps keep no state of their own: what they did can be seen in sandbox, log and files. */
export interface StepContext extends SandboxContext {
  /** What is kept of the task this one repeats. */
  readonly former: TaskRecord | undefined
  /** The task this one repeats; undefined where it is gone. */
  findRepeated(): Promise<Stored<AgentTask> | undefined>
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
  /** Processes the kernel ended for want of memory while the agent ran; undefined where the daemon cannot know. */
  oomKills?: number | undefined
}

export type Step = (context: StepContext) => Promise<StepOutcome>
