import type { TaskSummary } from '@corral/protocol'

/** The columns of the board and the sections of the list, in the order they are shown. */
export const taskGroups = ['needs-you', 'working', 'queued', 'draft', 'review', 'failed', 'done'] as const
export type TaskGroup = (typeof taskGroups)[number]

/** What a group needs of a task. */
export type GroupedTask = Pick<TaskSummary, 'id' | 'created_at'> & { status: string; outcome?: string | undefined }

export const groupTitles: Readonly<Record<TaskGroup, string>> = {
  'needs-you': 'Needs you',
  working: 'Working',
  queued: 'Queued',
  draft: 'Drafts',
  review: 'Ready to review',
  failed: 'Failed',
  done: 'Done',
}

/** `reviewed` are the tasks whose changes were opened in this browser. */
export function groupOf(task: GroupedTask, reviewed: ReadonlySet<string> = new Set()): TaskGroup {
  switch (task.status) {
    case 'WAITING_APPROVAL':
    case 'WAITING_INPUT':
      return 'needs-you'
    case 'DRAFT':
      return 'draft'
    case 'QUEUED':
      return 'queued'
    case 'PROVISIONING':
    case 'RUNNING':
      return 'working'
    case 'SUCCEEDED':
      return task.outcome === 'no_changes' || reviewed.has(task.id) ? 'done' : 'review'
    case 'CANCELLED':
      return (task.outcome === 'changes' || task.outcome === 'partial') && !reviewed.has(task.id) ? 'review' : 'done'
    default:
      return 'failed'
  }
}

/** Tasks by group, the newest first; what needs a person longest comes first there. */
export function grouped<T extends GroupedTask>(
  tasks: Iterable<T>,
  reviewed: ReadonlySet<string> = new Set(),
): ReadonlyMap<TaskGroup, readonly T[]> {
  const groups = new Map<TaskGroup, T[]>(taskGroups.map((group) => [group, []]))
  for (const task of [...tasks].sort(newestFirst)) groups.get(groupOf(task, reviewed))?.push(task)
  groups.get('needs-you')?.reverse()
  return groups
}

export function newestFirst(one: GroupedTask, other: GroupedTask): number {
  return other.created_at.localeCompare(one.created_at) || other.id.localeCompare(one.id)
}
