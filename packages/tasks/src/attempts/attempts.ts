import type { KubeClient } from '@corral/kube'
import type { CompleteTaskRequest, GroupView } from '@corral/protocol'
import { type AgentTask, AgentTasks, isAlreadyExists, type Stored } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { allAttempts, attemptBranch, attemptName, type Group, groupCompleteAnnotation } from '../task-state/group.js'
import { phaseOf } from '../task-state/stages.js'
import { taskView } from '../task-view.js'

/** Longest branch that still has room for the number of an attempt. */
const maxBranchCharacters = 190

/** The first attempt of a request that asks for several: the others are made from it. */
export interface FirstAttempt {
  name: string
  request: CompleteTaskRequest
  group: Group
}

/** `agents` has one for every attempt. Throws `Invalid` where a branch of theirs would have too long a name. */
export function firstAttempt(
  { attempts = [], ...request }: CompleteTaskRequest,
  { name, agents }: { name: string; agents: Group['agents'] },
): FirstAttempt {
  const branch = request.new_branch ?? `corral/${name}`
  if (branch.length > maxBranchCharacters)
    throw new TaskError('Invalid', `new_branch: with attempts a branch has ${maxBranchCharacters} characters at most`)
  const group: Group = { name, number: 1, branch, agents }
  const agent = attempts[0]?.agent ?? request.agent
  return {
    name: attemptName(name, 1),
    group,
    request: { ...request, ...(agent ? { agent } : {}), new_branch: attemptBranch(group, 1) },
  }
}

/** Makes the other attempts. The controller does the same where this is cut short. */
export async function makeSiblings(client: Pick<KubeClient, 'create'>, first: Stored<AgentTask>): Promise<string[]> {
  const all = allAttempts(first)
  const isComplete = first.metadata.annotations?.[groupCompleteAnnotation] !== undefined
  for (const attempt of isComplete ? [] : all.slice(1))
    await client.create(AgentTasks, attempt).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    })
  return all.map(({ metadata }) => metadata?.name ?? '')
}

/** The attempts of a group, with the retries of each behind it; without the tasks that push what was picked. */
export function membersOf(tasks: readonly Stored<AgentTask>[], group: string): Stored<AgentTask>[] {
  return tasks
    .filter(({ spec }) => spec.group?.name === group && !spec.group.pick)
    .sort(
      (left, right) =>
        left.spec.group!.number - right.spec.group!.number ||
        left.metadata.creationTimestamp.localeCompare(right.metadata.creationTimestamp),
    )
}

export function picksOf(tasks: readonly Stored<AgentTask>[], group: string): Stored<AgentTask>[] {
  return tasks
    .filter(({ spec }) => spec.group?.name === group && spec.group.pick)
    .sort((left, right) => left.spec.group!.pick! - right.spec.group!.pick!)
}

/** Throws `GroupNotFound` where no attempt is left. */
export function groupView(tasks: readonly Stored<AgentTask>[], name: string): GroupView {
  const members = membersOf(tasks, name)
  const [first] = members
  if (!first)
    throw new TaskError('GroupNotFound', `there are no attempts "${name.slice(0, 100)}"`, {
      hint: 'List the tasks with `corral task list`; `corral task get ID` names the group of an attempt.',
    })
  const picked = picksOf(tasks, name).at(-1)
  return {
    name,
    branch: first.spec.group!.branch,
    tasks: members.map((task) => taskView(task)),
    ...(picked
      ? { picked: { task: picked.spec.retryOf ?? '', by: picked.metadata.name, status: phaseOf(picked) } }
      : {}),
  }
}
