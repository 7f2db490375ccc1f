import { createHash } from 'node:crypto'
import type { TaskGroup } from '@corral/protocol'
import type { AgentTask } from '@corral/resources'

export type Group = NonNullable<AgentTask['spec']['group']>

/** For `kubectl get agenttasks -l`; the spec is what counts. */
export const groupLabel = 'corral.dev/group'

/** On the first attempt: all the others were made. Without it a pass makes those that are missing. */
export const groupCompleteAnnotation = 'corral.dev/group-complete'

export function groupViewOf({ name, number, branch, agents, pick }: Group): TaskGroup {
  return { name, number, size: agents.length, branch, ...(pick ? { pick } : {}) }
}

/** The branch of one attempt. */
export function attemptBranch({ branch }: Pick<Group, 'branch'>, number: number): string {
  return `${branch}-${number}`
}

/** The same for every pass, so that one that is repeated finds what it made. */
export function attemptName(group: string, number: number): string {
  return hashedName(`attempt ${number} of ${group}`)
}

/** The task that pushes what was picked, the first time, the second and so on: of two at once one is made. */
export function pickName(group: string, pick: number): string {
  return hashedName(`pick ${pick} of ${group}`)
}

function hashedName(text: string): string {
  return `task-${createHash('sha256').update(text).digest('hex').slice(0, 10)}`
}

/** Any attempt as the object of another one: only name, number, branch and agent differ. */
export function siblingOf({ metadata = {}, spec }: AgentTask, number: number): AgentTask {
  const group = spec.group!
  const { namespace, labels, annotations, finalizers } = metadata
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      name: attemptName(group.name, number),
      ...(namespace ? { namespace } : {}),
      ...(finalizers ? { finalizers } : {}),
      ...(annotations ? { annotations } : {}),
      ...(labels ? { labels } : {}),
    },
    spec: {
      ...spec,
      agent: group.agents[number - 1]!,
      newBranch: attemptBranch(group, number),
      group: { ...group, number },
    },
  }
}

/** Every attempt of a group, from the object of its first. */
export function allAttempts(first: AgentTask): AgentTask[] {
  return (first.spec.group?.agents ?? []).map((_, index) => (index === 0 ? first : siblingOf(first, index + 1)))
}

/** Whether a crash may have left the first attempt without the others. */
export function isIncomplete({ metadata = {}, spec }: AgentTask): boolean {
  if (spec.group?.number !== 1 || spec.retry || spec.retryOf || metadata.deletionTimestamp) return false
  return metadata.annotations?.[groupCompleteAnnotation] === undefined
}
