import { type AgentTask, defaultTaskTimeoutSeconds } from '@corral/resources'
import { checksTimeMs } from '../checks/task-checks.js'
import { agentRunOf } from '../plan-approval/agent-run.js'
import { isQuestionExpired, questionExpiredMessage, questionExpiryMs, waitedMs } from '../questions/question-status.js'
import type { Ending, EndReason } from '../task-state/ending.js'
import { hasPassed, isActive, stage } from '../task-state/stages.js'
import { taskLimits } from '../task-state/task-limits.js'
import type { TaskWorld } from './plan.js'

type EndWorld = Pick<TaskWorld, 'task' | 'now' | 'budgetRefusal'>

/** Why the task should end although nothing failed: the user or the clock says so. */
export function endReason({ task, now, budgetRefusal }: EndWorld): EndReason | undefined {
  if (task.spec.cancelRequested || task.metadata.deletionTimestamp) return 'Cancelled'
  if (!hasPassed(task, 'AgentStarted')) return undefined
  if (isQuestionExpired(task, now)) return 'QuestionExpired'
  if (now.getTime() >= deadlineMs(task, now)) return 'Timeout'
  return budgetRefusal === undefined ? undefined : 'BudgetExceeded'
}

export function endingFor(reason: EndReason, { task, budgetRefusal }: EndWorld): Ending {
  switch (reason) {
    case 'Cancelled':
      return { code: 'Cancelled', message: 'the task was cancelled' }
    case 'Timeout':
      return {
        code: 'Timeout',
        message: `the agent ran longer than ${task.spec.timeoutSeconds ?? defaultTaskTimeoutSeconds} s`,
      }
    case 'BudgetExceeded':
      return { code: 'BudgetExceeded', message: budgetRefusal ?? 'the task used up its model budget' }
    case 'QuestionExpired':
      return { code: 'QuestionExpired', message: questionExpiredMessage(task) }
  }
}

/**
 * The timeout counts from the moment the agent runs, and what its earlier runs used counts too. It stands still while the
 * agent waits for an answer.
 */
export function deadlineMs(task: AgentTask, now: Date): number {
  const startedAt = task.status?.times?.runningAt ?? stage(task, 'AgentStarted')?.lastTransitionTime
  const timeoutSeconds = task.spec.timeoutSeconds ?? defaultTaskTimeoutSeconds
  const { usedMs } = agentRunOf(task)
  if (!startedAt) return Number.POSITIVE_INFINITY
  return Date.parse(startedAt) + timeoutSeconds * 1000 - usedMs + waitedMs(task, now)
}

/** Time behind a task's deadline in which its work is collected and pushed. */
const collectSlackMs = 15 * 60_000

/**
 * Until when a task needs its sandbox should nothing watch over it: its deadline and time to collect its work. Undefined
 * for a task that holds none.
 */
export function sandboxNeededUntilMs(task: AgentTask, now: Date): number | undefined {
  if (!isActive(task) || !hasPassed(task, 'SandboxReady')) return undefined
  const timeoutMs = (task.spec.timeoutSeconds ?? defaultTaskTimeoutSeconds) * 1000
  const endMs = hasPassed(task, 'AgentStarted')
    ? deadlineMs(task, now)
    : now.getTime() + taskLimits.provisioningMs + timeoutMs
  // The answer may come in the last moment, and the agent then has its time.
  const answeredMs = (questionExpiryMs(task) ?? 0) + timeoutMs
  return Math.max(endMs, answeredMs, now.getTime()) + checksTimeMs(task) + collectSlackMs
}
