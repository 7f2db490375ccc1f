import type { AgentTask, Stored } from '@corral/resources'
import { TaskError } from './task-error.js'

/**
 * When a task was taken, to the microsecond: `creationTimestamp` has whole seconds, and a resourceVersion changes with
 * every record, so neither says which of two tasks came first.
 */
export const acceptedAtAnnotation = 'corral.dev/accepted-at'

export interface TaskPage {
  page: Stored<AgentTask>[]
  /** The cursor of the next page; absent on the last one. */
  next?: string
}

interface Place {
  at: string
  name: string
}

/**
 * One page of tasks, newest first. The order never changes while a task lives, and a cursor names a place in it rather
 * than a task, so going through all pages gives every task that is there throughout exactly once. A cursor may also be
 * the id of a task. Throws `BadRequest` for anything else.
 */
export function taskPage(
  tasks: readonly Stored<AgentTask>[],
  { limit, after, includes }: { limit: number; after?: string | undefined; includes: (task: AgentTask) => boolean },
): TaskPage {
  const start = after === undefined ? undefined : placeFrom(after, tasks)
  const rest = tasks
    .filter((task) => includes(task) && (!start || compare(placeOf(task), start) > 0))
    .sort((left, right) => compare(placeOf(left), placeOf(right)))
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  return { page, ...(last && rest.length > limit ? { next: cursorOf(placeOf(last)) } : {}) }
}

/** Time now and a count within it: no two tasks of one process get the same. */
export function acceptedTimes(now: () => Date): () => string {
  let last = ''
  let count = 0
  return () => {
    const time = now().toISOString().slice(0, -1)
    count = time === last ? count + 1 : 0
    last = time
    return `${time}${String(count).padStart(3, '0')}Z`
  }
}

function placeOf({ metadata }: Stored<AgentTask>): Place {
  const at = metadata.annotations?.[acceptedAtAnnotation] ?? metadata.creationTimestamp.replace(/Z$/, '.000000Z')
  return { at, name: metadata.name }
}

function compare(left: Place, right: Place): number {
  if (left.at !== right.at) return left.at < right.at ? 1 : -1
  return left.name === right.name ? 0 : left.name < right.name ? 1 : -1
}

function cursorOf({ at, name }: Place): string {
  return `${at}~${name}`
}

function placeFrom(cursor: string, tasks: readonly Stored<AgentTask>[]): Place {
  const [, at, name] = /^(\d{4}-\d\d-\d\dT[\d:.]{8,20}Z)~([a-z0-9.-]{1,253})$/.exec(cursor) ?? []
  if (at && name) return { at, name }
  const named = tasks.find(({ metadata }) => metadata.name === cursor)
  if (named) return placeOf(named)
  throw new TaskError('BadRequest', `after: "${cursor.slice(0, 100)}" is no place in the list of tasks`, {
    hint: 'Pass on `next` of the page before as it is, or leave it out to begin with the newest task.',
  })
}
