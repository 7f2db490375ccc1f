import type { AgentTask, Stored } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { type Retry, retryOf } from '../task-retry.js'
import { type Group, pickName } from '../task-state/group.js'
import { isFinished, phaseOf } from '../task-state/stages.js'

/** What a pick comes to: the task that already pushes it, or the one to make. */
export type Pick =
  | { kind: 'there'; task: Stored<AgentTask> }
  | { kind: 'new'; name: string; retry: Retry; group: Group }

/**
 * Gives the branch that was asked for to one attempt: a task without agent or sandbox that pushes its kept commit. Picking
 * the same again is a success; another one throws `AlreadyPicked` unless `force`, and takes the branch over only while it
 * stands where the former pick put it. `picks` are the picks of the group so far, in any order.
 */
export function pickOf(
  task: Stored<AgentTask>,
  picks: readonly Stored<AgentTask>[],
  { force = false }: { force?: boolean | undefined } = {},
): Pick {
  const { name } = task.metadata
  const { group } = task.spec
  if (!group || group.pick)
    throw new TaskError('PickNotPossible', `task ${name} is not one of several attempts`, {
      hint: 'Its branch is its own already; `corral task get ID` shows it.',
    })
  if (!isFinished(task)) throw new TaskError('TaskNotFinished', `task ${name} has not ended yet (${phaseOf(task)})`)
  if (!task.status?.commit || task.status.outcome === 'no_changes')
    throw new TaskError('PickNotPossible', `task ${name} kept no commit that could be pushed`)
  const inOrder = [...picks].sort((left, right) => (left.spec.group?.pick ?? 0) - (right.spec.group?.pick ?? 0))
  // One that could not be pushed counts for nothing: it may be picked again, or another one.
  const standing = inOrder.findLast((pick) => !isFinished(pick) || phaseOf(pick) === 'SUCCEEDED')
  if (standing?.spec.retryOf === name) return { kind: 'there', task: standing }
  if (standing && !force)
    throw new TaskError('AlreadyPicked', `task ${standing.spec.retryOf ?? ''} was picked for ${group.branch}`, {
      hint: `To give the branch to this one instead: \`corral task pick ${name} --force\`.`,
    })
  if (standing && !isFinished(standing))
    throw new TaskError('TaskNotFinished', `task ${standing.metadata.name} is still pushing ${group.branch}`)
  const number = (inOrder.at(-1)?.spec.group?.pick ?? 0) + 1
  const retry = retryOf(task, { from: 'push', new_branch: group.branch })
  const replaced = inOrder.flatMap(({ status }) => (status?.commit ? [status.commit] : []))
  return {
    kind: 'new',
    name: pickName(group.name, number),
    group: { ...group, pick: number },
    // Only what earlier picks put there is replaced: not the attempt's own commits, which are on a branch of their own.
    retry: { ...retry, spec: { ...retry.spec, replaces: replaced.slice(-20) } },
  }
}
