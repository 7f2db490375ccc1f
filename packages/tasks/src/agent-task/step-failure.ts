import { isTaskCause } from '@corral/protocol'
import { type AgentTaskStatus, errorCode } from '@corral/resources'
import { TaskError } from '../task-error.js'
import type { StageCondition } from '../task-state/stages.js'
import type { StepName } from './plan.js'

export interface StepFailure {
  condition: StageCondition
  code: string
  message: string
  hint?: string
  /** What else the step found out before it failed. */
  status?: Partial<AgentTaskStatus>
}

/** The stage a step fails when it cannot be done. */
const conditionOf: Record<StepName, StageCondition> = {
  repository: 'RepositoryReady',
  setup: 'SetupDone',
  suspend: 'PlanApproved',
  'start-agent': 'AgentStarted',
  'follow-agent': 'AgentFinished',
  'stop-agent': 'AgentFinished',
  check: 'ChecksDone',
  repair: 'ChecksDone',
  'stop-checks': 'ChecksDone',
  collect: 'ResultCollected',
  push: 'Pushed',
  'take-over': 'ResultCollected',
  salvage: 'ResultCollected',
}

/** Codes of the daemon and the SDK that mean a cause of ours. */
const causeOfCode: Record<string, string> = {
  DiskFull: 'DiskFull',
  CommandNotFound: 'AgentStartFailed',
  CommandNotExecutable: 'AgentStartFailed',
  SandboxDeleted: 'SandboxLost',
  SandboxFailed: 'SandboxLost',
  Invalid: 'InvalidTask',
  // Of a check's name or a former task's uid, which the task API would have refused: trying again does not help.
  BadRequest: 'InvalidTask',
  CredentialsInUrl: 'InvalidTask',
}

const fullDisk = new Set(['DiskFull', 'ENOSPC'])
const maxDiskFullFailures = 6

/** Failures in a row after which a step that may still work out is given up. Past `sandboxLostGraceMs`, see `retryMs`. */
const maxFailures = 32

/** A remote that is away is asked again for about six minutes. */
const maxPushFailures = 12

/** How a remote that is away is told: no answer, or, where it is a directory, a file system that is not mounted. */
const awayAtPush = new Set(['PushFailed', 'RepositoryNotFound'])

/** How long a step waits after so many failures in a row. */
export function retryMs(step: StepName, failures: number): number {
  return step === 'push' ? Math.min(60_000, 500 * 2 ** failures) : Math.min(5_000, 100 * 2 ** failures)
}

function statusIn({ details }: TaskError): { status?: Partial<AgentTaskStatus> } {
  return details.status ? { status: details.status as Partial<AgentTaskStatus> } : {}
}

/**
 * What a failed step means: a cause that ends the task, or undefined when it is worth another try (a lost connection,
 * an API server that is away, a remote that does not answer).
 */
export function judgeFailure(step: StepName, error: unknown, failures: number): StepFailure | undefined {
  const message = error instanceof Error ? error.message : String(error)
  const code = errorCode(error) ?? ''
  // The node evicts the sandbox that fills the disk within seconds; a step that fails before that can still succeed.
  const isFinal = error instanceof TaskError && error.details.isFinal === true
  if (fullDisk.has(code) && !isFinal && failures < maxDiskFullFailures) return undefined
  if (step === 'push' && awayAtPush.has(code) && failures < maxPushFailures) return undefined
  if (error instanceof TaskError && isTaskCause(error.code))
    return {
      condition: conditionFor(step, code),
      code,
      message,
      ...(error.hint ? { hint: error.hint } : {}),
      ...statusIn(error),
    }
  const cause = causeOfCode[code] ?? (code === 'ENOSPC' ? 'DiskFull' : undefined)
  if (cause) return { condition: conditionFor(step, cause), code: cause, message }
  if (failures < maxFailures) return undefined
  return {
    condition: conditionOf[step],
    code: code === 'ConnectionLost' ? 'DaemonUnreachable' : 'InternalError',
    message,
  }
}

/** A sandbox that is lost before the agent was started fails no stage of the task's work: another one may do. */
function conditionFor(step: StepName, code: string): StageCondition {
  const isBefore = step === 'repository' || step === 'setup'
  return isBefore && code === 'SandboxLost' ? 'SandboxReady' : conditionOf[step]
}
