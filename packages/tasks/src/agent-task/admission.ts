import type { AgentTask, Stored } from '@corral/resources'
import { hasPassed, isActive, isFinished } from './stages.js'

/**
 * Which waiting tasks may start now: the oldest first, as many as the limit leaves room for. Pure and the same for
 * every caller, so two passes never admit more than the limit between them.
 */
export function admissible(tasks: Iterable<Stored<AgentTask>>, limit: number): Set<string> {
  const waiting: Stored<AgentTask>[] = []
  let active = 0
  for (const task of tasks) {
    if (isActive(task)) active += 1
    else if (
      !isFinished(task) &&
      !hasPassed(task, 'Admitted') &&
      !task.metadata.deletionTimestamp &&
      !task.spec.cancelRequested
    )
      waiting.push(task)
  }
  const room = Math.max(0, limit - active)
  if (room === 0) return new Set()
  return new Set(
    waiting
      .sort(byAge)
      .slice(0, room)
      .map((task) => task.metadata.uid),
  )
}

/** Places given out: also those whose record has not come back through the watch yet, so the limit always holds. */
export interface Grants {
  /** Whether this waiting task has, or now gets, a place. */
  mayStart(uid: string): boolean
  /** The tasks a free place would go to. */
  admissible(): Set<string>
}

export function createGrants(options: { list: () => Stored<AgentTask>[]; limit: number }): Grants {
  const granted = new Set<string>()
  const free = (): Set<string> => {
    const tasks = options.list()
    const stillWaiting = new Set(
      tasks.filter((task) => !isFinished(task) && !hasPassed(task, 'Admitted')).map(({ metadata }) => metadata.uid),
    )
    for (const uid of granted) if (!stillWaiting.has(uid)) granted.delete(uid)
    const others = tasks.filter(({ metadata }) => !granted.has(metadata.uid))
    return admissible(others, options.limit - granted.size)
  }
  return {
    mayStart(uid) {
      const room = free()
      if (granted.has(uid)) return true
      if (!room.has(uid)) return false
      granted.add(uid)
      return true
    },
    admissible: free,
  }
}

function byAge(left: Stored<AgentTask>, right: Stored<AgentTask>): number {
  return (
    Date.parse(left.metadata.creationTimestamp) - Date.parse(right.metadata.creationTimestamp) ||
    Number(left.metadata.resourceVersion) - Number(right.metadata.resourceVersion) ||
    left.metadata.name.localeCompare(right.metadata.name)
  )
}
