import type { TaskEventBody } from '@corral/protocol'
import type { AgentTask, AgentTaskStatus } from '@corral/resources'
import type { StepOutcome } from '../steps/step.js'
import { stage } from '../task-state/stages.js'
import type { StepName } from './plan.js'
import { judgeFailure, retryMs, type StepFailure } from './step-failure.js'
import type { EndedStep } from './step-runner.js'
import { stageOf } from './step-stages.js'
import { causeOf, type StatusChange } from './task-status.js'

/** What the end of a step means for its task. */
export type EndedMove =
  /** Nothing is recorded; the plan starts the step again after the wait. */
  | { kind: 'tryAgain'; requeueAfterMs: number }
  /** First the events, then the status: a reader of the status finds the log complete. */
  | { kind: 'record'; events: readonly TaskEventBody[]; change: StatusChange; isFailure: boolean }

const maxErrorCharacters = 60_000
const maxDetailCharacters = 2_000

/** Decides what is recorded of a step that ended, or when it is tried again. Pure. */
export function afterStep(task: AgentTask, ended: EndedStep): EndedMove {
  if ('outcome' in ended) return recordOutcome(task, ended.outcome)
  const failure = judgeFailure(ended.name, ended.error, ended.failures)
  if (!failure) return { kind: 'tryAgain', requeueAfterMs: retryMs(ended.name, ended.failures) }
  return recordFailure(task, ended.name, failure)
}

function recordOutcome(task: AgentTask, outcome: StepOutcome): EndedMove {
  const { condition, conditionStatus = 'True', reason, message, status, events = [] } = outcome
  const change = { condition, status: conditionStatus, reason, message, patch: withoutRest(task, status) }
  return { kind: 'record', events, change, isFailure: false }
}

function recordFailure(task: AgentTask, step: StepName, failure: StepFailure): EndedMove {
  const { condition, code, message, hint, status } = failure
  const detail = message.slice(0, maxDetailCharacters)
  return {
    kind: 'record',
    isFailure: true,
    events: [
      { type: 'error', code, message: message.slice(0, maxErrorCharacters) },
      { type: 'stage', stage: stageOf[step], state: 'failed', detail },
    ],
    change: {
      condition,
      // However the agent's end was missed, it is over: what it left is collected before the task ends.
      status: condition === 'AgentFinished' || condition === 'ChecksDone' ? 'True' : 'False',
      reason: code,
      message,
      patch: {
        ...(status ?? keptSandbox(task, step, code)),
        // A cause the agent already ended with stays the task's cause.
        ...(task.status?.cause || condition === 'SandboxReady' ? {} : { cause: causeOf(code, message, hint) }),
      },
    },
  }
}

/**
 * A sandbox whose work could not be taken out is kept. Not on a full disk: what fills it has to go before any other task
 * can write again.
 */
function keptSandbox({ status }: AgentTask, step: StepName, code: string): Partial<AgentTaskStatus> {
  if (step !== 'collect' || code === 'DiskFull' || code === 'DiskLimit' || !status?.sandbox) return {}
  return { sandbox: { ...status.sandbox, kept: true } }
}

const cutShort: ReadonlySet<string> = new Set(['SandboxLost', 'DaemonUnreachable', 'OutOfMemory'])

/** The work of an agent that was cut short is recorded as a part of it. */
function withoutRest(task: AgentTask, status: Partial<AgentTaskStatus> = {}): Partial<AgentTaskStatus> {
  const end = stage(task, 'AgentFinished')?.reason ?? ''
  return status.outcome === 'changes' && cutShort.has(end) ? { ...status, outcome: 'partial' } : status
}
