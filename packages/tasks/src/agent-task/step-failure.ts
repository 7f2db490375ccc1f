import { isTaskCause } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import { TaskError } from '../task-error.js'
import type { StepName } from './plan.js'
import type { StageCondition } from './stages.js'

export interface StepFailure {
  condition: StageCondition
  code: string
  message: string
  hint?: string
}

/** The stage a step fails when it cannot be done. */
const conditionOf: Record<StepName, StageCondition> = {
  repository: 'RepositoryReady',
  setup: 'SetupDone',
  'start-agent': 'AgentStarted',
  'follow-agent': 'AgentFinished',
  'stop-agent': 'AgentFinished',
  collect: 'ResultCollected',
  push: 'Pushed',
}

/** Codes of the daemon and the SDK that mean a cause of ours. */
const causeOfCode: Record<string, string> = {
  DiskFull: 'DiskFull',
  CommandNotFound: 'AgentStartFailed',
  CommandNotExecutable: 'AgentStartFailed',
  SandboxDeleted: 'SandboxLost',
  SandboxFailed: 'SandboxLost',
  Invalid: 'InvalidTask',
}

/** Failures in a row after which a step that may still work out is given up. */
const maxFailures = 6

/**
 * What a failed step means: a cause that ends the task, or undefined when it is worth another try (a lost connection,
 * an API server that is away).
 */
export function judgeFailure(step: StepName, error: unknown, failures: number): StepFailure | undefined {
  const condition = conditionOf[step]
  const message = error instanceof Error ? error.message : String(error)
  const code = errorCode(error) ?? ''
  if (error instanceof TaskError && isTaskCause(error.code))
    return { condition, code: error.code, message, ...(error.hint ? { hint: error.hint } : {}) }
  const cause = causeOfCode[code] ?? (code === 'ENOSPC' ? 'DiskFull' : undefined)
  if (cause) return { condition, code: cause, message }
  if (failures < maxFailures) return undefined
  return { condition, code: code === 'ConnectionLost' ? 'DaemonUnreachable' : 'InternalError', message }
}
