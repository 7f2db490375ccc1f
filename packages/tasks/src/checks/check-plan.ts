import { type AgentTask, defaultTaskTimeoutSeconds } from '@corral/resources'
import { agentRunOf } from '../plan-approval/agent-run.js'
import { isQuestionExpired, questionExpiredMessage, questionExpiryMs, waitedMs } from '../questions/question-status.js'
import type { EndReason } from '../task-state/ending.js'
import { hasPassed, stage } from '../task-state/stages.js'
import { checksOf } from './task-checks.js'

/** What checks need next, once the agent has ended. `over`: nothing, the result can be taken out. */
export type CheckMove =
  | { move: 'over' }
  | { move: 'check' }
  | { move: 'repair'; deadlineMs: number }
  | { move: 'stop'; reason: EndReason; message: string }

/**
 * Checks judge the work of an agent that ended well. The time they take is their own; an agent that is sent back goes on
 * with what is left of its own time and budget.
 */
export function nextCheckMove({
  task,
  isCancelled,
  budgetRefusal,
  now,
}: {
  task: AgentTask
  isCancelled: boolean
  budgetRefusal: string | undefined
  now: Date
}): CheckMove {
  if (!isChecking(task)) return { move: 'over' }
  if (isCancelled) return { move: 'stop', reason: 'Cancelled', message: 'the task was cancelled' }
  const repair = task.status?.checks?.repair
  if (!repair) return { move: 'check' }
  if (budgetRefusal !== undefined) return { move: 'stop', reason: 'BudgetExceeded', message: budgetRefusal }
  if (isQuestionExpired(task, now))
    return { move: 'stop', reason: 'QuestionExpired', message: questionExpiredMessage(task) }
  const deadlineMs = Date.parse(repair.startedAt) + agentTimeLeftMs(task, now)
  if (now.getTime() >= deadlineMs) {
    const seconds = task.spec.timeoutSeconds ?? defaultTaskTimeoutSeconds
    return { move: 'stop', reason: 'Timeout', message: `the agent ran longer than ${seconds} s` }
  }
  return { move: 'repair', deadlineMs: questionExpiryMs(task) ?? deadlineMs }
}

/** The agent ended well, and what it did is still being judged or repaired. */
export function isChecking(task: AgentTask): boolean {
  return (
    checksOf(task).length > 0 &&
    stage(task, 'AgentFinished')?.reason === 'Completed' &&
    !hasPassed(task, 'ChecksDone') &&
    !hasPassed(task, 'ResultCollected')
  )
}

/** Whether the agent runs again, to repair what checks found. */
export function isRepairing(task: AgentTask): boolean {
  return isChecking(task) && task.status?.checks?.repair !== undefined
}

/** What the agent has not used of its time, its first run and its repairs together. */
function agentTimeLeftMs(task: AgentTask, now: Date): number {
  const { spec, status } = task
  const { runningAt, agentFinishedAt } = status?.times ?? {}
  const firstMs = runningAt && agentFinishedAt ? Date.parse(agentFinishedAt) - Date.parse(runningAt) : 0
  const usedMs = agentRunOf(task).usedMs + firstMs + (status?.checks?.repairsMs ?? 0) - waitedMs(task, now)
  return Math.max(0, (spec.timeoutSeconds ?? defaultTaskTimeoutSeconds) * 1000 - usedMs)
}

/** How checks end the task; undefined where it had none or they passed. */
export function checksEnding(task: AgentTask): { code: string; message: string } | undefined {
  const done = stage(task, 'ChecksDone')
  return done?.status === 'True' && done.reason !== 'Passed' ? { code: done.reason, message: done.message } : undefined
}

/** Whether the branch stays where it is because its checks failed. */
export function isPushWithheld(task: AgentTask): boolean {
  return task.spec.onFailedChecks === 'no-push' && checksEnding(task)?.code === 'ChecksFailed'
}
