import { type CompleteTaskRequest, messageText, type TaskMessageRequest } from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { requestFrom } from '../task-request.js'
import { branchOf } from '../task-state/branch-of.js'
import { isFinished, phaseOf } from '../task-state/stages.js'

export type Continuation = NonNullable<AgentTask['spec']['continues']>

/** A task that goes on from an ended one. */
export interface FollowUp {
  request: CompleteTaskRequest
  continues: Continuation
}

/**
 * On an ended task: the follow-up that goes on with its branch, and since when. The task itself stays as it is.
 */
export const continuedByAnnotation = 'corral.dev/continued-by'

/**
 * The follow-up of an ended task: the same repository, agent and environment, from the commit where the former stopped.
 * It goes on with the former's branch, unless `isBranchFree` is false or another name is asked for. Throws
 * `TaskNotFinished` before the former's end.
 */
export function followUpOf(
  former: Stored<AgentTask>,
  message: TaskMessageRequest,
  { isBranchFree }: { isBranchFree: boolean },
): FollowUp {
  const { name, uid } = former.metadata
  if (!isFinished(former)) throw new TaskError('TaskNotFinished', `task ${name} has not ended yet (${phaseOf(former)})`)
  const { status, spec } = former
  const state = stateOf(former)
  const { new_branch: _branch, mode: _mode, ...request } = requestFrom(former)
  const newBranch = message.new_branch ?? (isBranchFree ? state.newBranch : undefined)
  const baseBranch = status?.baseBranch ?? spec.baseBranch
  return {
    request: {
      ...request,
      task: messageText(message),
      ...(message.mode ? { mode: message.mode } : {}),
      ...(baseBranch ? { base_branch: baseBranch } : {}),
      ...(newBranch ? { new_branch: newBranch } : {}),
    },
    continues: {
      task: name,
      uid,
      thread: spec.continues?.thread ?? name,
      ...(state.branch ? { branch: state.branch } : {}),
      ...(state.commit ? { commit: state.commit } : {}),
      ...(baseBranch ? { baseBranch } : {}),
      ...(status?.baseCommit ? { baseCommit: status.baseCommit } : {}),
      ...(status?.session ? { sessionId: status.session.id } : {}),
      ...(status?.sandbox?.heldUntil ? { claimName: status.sandbox.claimName } : {}),
    },
  }
}

/** Where the work of an ended task stands, and the branch a follow-up goes on with; undefined for one of its own. */
function stateOf(task: Stored<AgentTask>): {
  commit?: string | undefined
  branch?: string | undefined
  newBranch?: string | undefined
} {
  const { status, spec } = task
  const hasResult = status?.commit !== undefined && status.outcome !== 'no_changes'
  if (hasResult) {
    // A branch of that name in the repository may hold work of others, since ours was not pushed: the work goes to another.
    const branch = status.pushed ? branchOf(task) : undefined
    return { commit: status.commit, branch, newBranch: branch }
  }
  if (spec.continues)
    return {
      commit: status?.baseCommit ?? spec.continues.commit,
      branch: spec.continues.branch,
      newBranch: branchOf(task),
    }
  return { newBranch: branchOf(task) }
}
