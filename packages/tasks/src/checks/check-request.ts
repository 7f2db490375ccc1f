import type { CreateTaskRequest } from '@corral/protocol'
import type { AgentTaskSpec } from '@corral/resources'

type ChecksOfRequest = Pick<CreateTaskRequest, 'checks' | 'check_rounds' | 'on_failed_checks'>
type ChecksOfSpec = Pick<AgentTaskSpec, 'checks' | 'checkRounds' | 'onFailedChecks'>

/** The checks of a request as a spec holds them. */
export function checksSpec({ checks, check_rounds, on_failed_checks }: ChecksOfRequest): ChecksOfSpec {
  return {
    ...(checks
      ? {
          checks: checks.map(({ name, command, timeout_seconds }) => ({
            name,
            command,
            ...(timeout_seconds ? { timeoutSeconds: timeout_seconds } : {}),
          })),
        }
      : {}),
    ...(check_rounds === undefined ? {} : { checkRounds: check_rounds }),
    ...(on_failed_checks ? { onFailedChecks: on_failed_checks } : {}),
  }
}

/** The request such checks came from. */
export function checksRequest({ checks, checkRounds, onFailedChecks }: ChecksOfSpec): ChecksOfRequest {
  return {
    ...(checks
      ? {
          checks: checks.map(({ name, command, timeoutSeconds }) => ({
            name,
            command,
            ...(timeoutSeconds ? { timeout_seconds: timeoutSeconds } : {}),
          })),
        }
      : {}),
    ...(checkRounds === undefined ? {} : { check_rounds: checkRounds }),
    ...(onFailedChecks ? { on_failed_checks: onFailedChecks } : {}),
  }
}
