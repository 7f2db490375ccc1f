import type { AgentTask, Stored } from '@corral/resources'
import { isAwaitingApproval } from '../plan-approval/await-approval.js'
import { hasPassed, isActive, isFinished } from '../task-state/stages.js'

/**
 * The places of the concurrency limit: the waiting task with the highest priority gets the next free one, the oldest of those
 * with the same. Follows every task by its
 * events, so that a pass costs the same whether ten tasks wait or ten thousand. A place given out counts before its
 * record has come back through the watch, so the limit always holds.
 */
export interface ConcurrencyLimiter {
  /** A task appeared or changed. */
  observe(task: Stored<AgentTask>): void
  forget(uid: string): void
  /** Whether this waiting task has, or now gets, a place. */
  mayStart(uid: string): boolean
  /** The tasks the free places would go to. */
  admissible(): Set<string>
  /** The tasks that wait for a place, the next one first. */
  inOrder(): Stored<AgentTask>[]
}

/** `isHeld` tasks keep their place in the order and let others go before them. */
export function createConcurrencyLimiter(options: {
  limit: number
  isHeld?: (task: Stored<AgentTask>) => boolean
}): ConcurrencyLimiter {
  const waiting = new Map<string, Stored<AgentTask>>()
  const active = new Set<string>()
  const granted = new Set<string>()

  function forget(uid: string): void {
    waiting.delete(uid)
    active.delete(uid)
    granted.delete(uid)
  }
  function admissible(): Set<string> {
    const room = options.limit - active.size - granted.size
    if (room <= 0) return new Set()
    const without = [...waiting.values()].filter((task) => !granted.has(task.metadata.uid) && !options.isHeld?.(task))
    return new Set(firstOf(without, room).map(({ metadata }) => metadata.uid))
  }
  return {
    observe(task) {
      const { uid } = task.metadata
      const hasPlace = granted.has(uid) && !isFinished(task) && !hasPassed(task, 'Admitted')
      forget(uid)
      if (hasPlace) granted.add(uid)
      if (isActive(task)) active.add(uid)
      else if (isWaiting(task)) waiting.set(uid, task)
    },
    forget,
    mayStart(uid) {
      if (granted.has(uid)) return true
      if (!admissible().has(uid)) return false
      granted.add(uid)
      return true
    },
    admissible,
    inOrder: () => [...waiting.values()].filter(({ metadata }) => !granted.has(metadata.uid)).sort(byPriorityAndAge),
  }
}

function isWaiting(task: Stored<AgentTask>): boolean {
  return (
    !isFinished(task) &&
    !isAwaitingApproval(task) &&
    !hasPassed(task, 'Admitted') &&
    !task.metadata.deletionTimestamp &&
    !task.spec.cancelRequested
  )
}

function firstOf(tasks: Stored<AgentTask>[], count: number): Stored<AgentTask>[] {
  return tasks.length <= count ? tasks : tasks.sort(byPriorityAndAge).slice(0, count)
}

function byPriorityAndAge(left: Stored<AgentTask>, right: Stored<AgentTask>): number {
  return (
    (right.spec.priority ?? 0) - (left.spec.priority ?? 0) ||
    Date.parse(left.metadata.creationTimestamp) - Date.parse(right.metadata.creationTimestamp) ||
    Number(left.metadata.resourceVersion) - Number(right.metadata.resourceVersion) ||
    left.metadata.name.localeCompare(right.metadata.name)
  )
}
