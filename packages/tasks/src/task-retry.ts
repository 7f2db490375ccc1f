import type { CompleteTaskRequest, RetryTaskRequest } from '@corral/protocol'
import type { AgentTask, RetryStage, Stored } from '@corral/resources'
import { checksEnding } from './checks/check-plan.js'
import { TaskError } from './task-error.js'
import { requestFrom } from './task-request.js'
import { branchOf } from './task-state/branch-of.js'
import { hasPassed, isFinished, phaseOf, stage } from './task-state/stages.js'

/** A task that repeats another one. */
export interface Retry {
  of: string
  request: CompleteTaskRequest
  spec: NonNullable<AgentTask['spec']['retry']>
}

/**
 * The retry of an ended task: from the stage that failed unless another one is asked for, with what the task kept. Throws
 * `TaskNotFinished` before its end, and `RetryNotPossible` where it kept nothing to begin with.
 */
export function retryOf(task: Stored<AgentTask>, wanted: RetryTaskRequest): Retry {
  const { name, uid } = task.metadata
  if (!isFinished(task)) throw new TaskError('TaskNotFinished', `task ${name} has not ended yet (${phaseOf(task)})`)
  const from = wanted.from ?? failedStage(task)
  checkKept(task, from, wanted)
  const { commit, baseCommit, baseBranch } = task.status ?? {}
  const isPartial = task.status?.outcome === 'partial'
  // What checks found wrong is repaired on top of the work, not by doing all of it again.
  const isJudged = checksEnding(task)?.code === 'ChecksFailed'
  const goesOn =
    from === 'push' || (from === 'agent' && hasResult(task) && (wanted.keep_work ?? (isPartial || isJudged)))
  const branch = wanted.new_branch ?? (from === 'push' ? branchOf(task) : task.spec.newBranch)
  const replaces = [...new Set([...(task.spec.retry?.replaces ?? []), ...(commit ? [commit] : [])])].slice(-20)
  return {
    of: name,
    request: {
      ...requestFrom(task),
      ...(branch ? { new_branch: branch } : {}),
      ...(from !== 'start' && baseBranch ? { base_branch: baseBranch } : {}),
    },
    spec: {
      from,
      uid,
      ...(from !== 'start' && baseCommit ? { baseCommit } : {}),
      ...(goesOn && commit ? { commit } : {}),
      ...(goesOn && (isPartial || !hasAgentCompleted(task)) ? { partial: true } : {}),
      ...(replaces.length > 0 ? { replaces } : {}),
    },
  }
}

/** The stage a retry begins with by itself. */
export function failedStage(task: AgentTask): RetryStage {
  if (phaseOf(task) === 'SUCCEEDED') return 'start'
  const isGood = hasAgentCompleted(task) && !checksEnding(task)
  if (hasResult(task) && isGood && !task.status?.pushed) return 'push'
  return task.status?.baseCommit ? 'agent' : 'start'
}

function checkKept(task: Stored<AgentTask>, from: RetryStage, { keep_work }: RetryTaskRequest): void {
  const { name } = task.metadata
  const refuse = (what: string, hint: string): TaskError =>
    new TaskError('RetryNotPossible', `task ${name} ${what}`, { hint })
  if (from === 'push' && !hasResult(task))
    throw refuse('kept no commit that could be pushed', 'Retry with `from` set to `agent`, or `start`.')
  if (from === 'agent' && !task.status?.baseCommit)
    throw refuse('ended before its base was known', 'Retry with `from` set to `start`.')
  if (keep_work && (from !== 'agent' || !hasResult(task)))
    throw refuse('kept no work that an agent could go on from', 'Retry without `keep_work`.')
}

function hasResult({ status, ...task }: AgentTask): boolean {
  const isChanged = status?.outcome === 'changes' || status?.outcome === 'partial'
  return isChanged && status.commit !== undefined && hasPassed({ ...task, status }, 'ResultCollected')
}

/** A retry that only pushes has no agent of its own: the work it took over counts. */
function hasAgentCompleted(task: AgentTask): boolean {
  const finished = stage(task, 'AgentFinished')
  return finished ? finished.reason === 'Completed' : task.spec.retry?.partial !== true
}
