import { checkLimits, type TaskChecks } from '@corral/protocol'
import type { AgentTask, AgentTaskSpec } from '@corral/resources'

type Check = NonNullable<AgentTaskSpec['checks']>[number]

/** The checks of a task: those of the request, else those its repository declares. */
export function checksOf({ spec, status }: AgentTask): readonly Check[] {
  return spec.checks ?? status?.checks?.declared ?? []
}

/** How often the agent may be sent back. */
export function repairRoundsOf({ spec }: AgentTask): number {
  return spec.checkRounds ?? checkLimits.defaultRounds
}

export function timeoutMsOf(check: Check): number {
  return (check.timeoutSeconds ?? checkLimits.defaultTimeoutSeconds) * 1000
}

/** The most time checks can take in all rounds. */
export function checksTimeMs(task: AgentTask): number {
  const once = checksOf(task).reduce((sum, check) => sum + timeoutMsOf(check), 0)
  return once * (repairRoundsOf(task) + 1)
}

/** The checks of a task as the API shows them; undefined for a task without. */
export function checksView(task: AgentTask): TaskChecks | undefined {
  const list = checksOf(task)
  if (list.length === 0) return undefined
  return {
    list: list.map(({ name, command, timeoutSeconds }) => ({
      name,
      command,
      ...(timeoutSeconds ? { timeout_seconds: timeoutSeconds } : {}),
    })),
    check_rounds: repairRoundsOf(task),
    on_failed_checks: task.spec.onFailedChecks ?? 'push',
    rounds: (task.status?.checks?.rounds ?? []).map((round) => ({
      round: round.round,
      passed: round.passed,
      started_at: round.startedAt,
      finished_at: round.finishedAt,
      results: round.results.map(({ name, outcome, exitCode, durationMs, output }) => ({
        name,
        outcome,
        ...(exitCode === undefined ? {} : { exit_code: exitCode }),
        duration_ms: durationMs,
        ...(output ? { output } : {}),
      })),
    })),
  }
}
