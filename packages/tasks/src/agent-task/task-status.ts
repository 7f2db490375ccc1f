import { taskCauses } from '@corral/protocol'
import {
  type AgentTask,
  type AgentTaskStatus,
  type ConditionStatus,
  type Stored,
  setCondition,
} from '@corral/resources'
import { inputConditions, withoutTalk } from '../questions/question-status.js'
import { type endCondition, phaseOf, type StageCondition } from '../task-state/stages.js'

export interface StatusChange {
  condition: StageCondition | typeof endCondition
  status: ConditionStatus
  reason: string
  message: string
  patch?: Partial<AgentTaskStatus>
}

const timeOf: Record<StageCondition | typeof endCondition, keyof NonNullable<AgentTaskStatus['times']>> = {
  Admitted: 'provisioningAt',
  SandboxReady: 'sandboxReadyAt',
  RepositoryReady: 'repositoryReadyAt',
  SetupDone: 'setupDoneAt',
  PlanApproved: 'planApprovedAt',
  AgentStarted: 'runningAt',
  AgentFinished: 'agentFinishedAt',
  ChecksDone: 'checksDoneAt',
  ResultCollected: 'resultCollectedAt',
  Pushed: 'pushedAt',
  Succeeded: 'finishedAt',
}

/** Conditions that say that a run of the agent is over: it waits for no answer any more. */
const endsAgent: ReadonlySet<StatusChange['condition']> = new Set(['AgentFinished', 'ChecksDone', 'Succeeded'])

const maxMessageCharacters = 8 * 1024

/** The task with one more thing recorded: condition, time and whatever belongs to it; the phase follows. */
export function withStatus(task: Stored<AgentTask>, change: StatusChange, now: Date): Stored<AgentTask> {
  const time = now.toISOString()
  const generation = task.metadata.generation
  const condition = {
    type: change.condition,
    status: change.status,
    reason: change.reason,
    message: change.message.slice(0, maxMessageCharacters),
    lastTransitionTime: `${time.slice(0, 19)}Z`,
    ...(generation !== undefined ? { observedGeneration: generation } : {}),
  }
  const reached = change.status === 'Unknown' ? {} : { [timeOf[change.condition]]: time }
  const times = { queuedAt: task.metadata.creationTimestamp, ...task.status?.times, ...reached }
  const input = endsAgent.has(change.condition) ? withoutTalk(task, now, change.reason === 'QuestionExpired') : {}
  const recorded = setCondition(task.status?.conditions ?? [], condition, now)
  const status: AgentTaskStatus = {
    ...task.status,
    ...change.patch,
    ...input,
    conditions: input.input ? inputConditions({ conditions: recorded, ...input }, now) : recorded,
    times,
    ...(generation !== undefined ? { observedGeneration: generation } : {}),
  }
  const next = { ...task, status }
  return { ...next, status: { ...status, phase: phaseOf(next) } }
}

/** The task as it stood when it was admitted, with one more attempt; the base it was to start from stays the same. */
export function startedAgain(
  task: Stored<AgentTask>,
  { attempt, message }: { attempt: number; message: string },
  now: Date,
): Stored<AgentTask> {
  const { sandbox: _sandbox, ...before } = task.status ?? {}
  const { sandboxReadyAt: _ready, repositoryReadyAt: _repository, setupDoneAt: _setup, ...times } = before.times ?? {}
  const status: AgentTaskStatus = {
    ...before,
    times,
    conditions: (before.conditions ?? []).filter(({ type }) => type === 'Admitted' || type === 'PlanApproved'),
    attempt: { number: attempt, startedAt: now.toISOString(), reason: message.slice(0, maxMessageCharacters) },
  }
  const next = { ...task, status }
  return { ...next, status: { ...status, phase: phaseOf(next) } }
}

/** A cause as it stands in the record, with the next move from the cause table unless a better one is known. */
export function causeOf(code: string, message: string, hint?: string): NonNullable<AgentTaskStatus['cause']> {
  const known = (taskCauses as Record<string, { hint: string } | undefined>)[code]
  const next = hint ?? known?.hint
  return { code, message: message.slice(0, maxMessageCharacters), ...(next ? { hint: next } : {}) }
}
