import type { AgentTask, Stored } from '@corral/resources'
import { holdLeftMs } from './hold.js'

/** Sandboxes that ended tasks hold: at most `limit`, and the oldest goes first. Follows tasks by their events. */
export interface HeldLimit {
  /** A task appeared or changed. Answers the tasks that hold one too many now, by uid. */
  observe(task: Stored<AgentTask>): string[]
  forget(uid: string): void
  isOver(uid: string): boolean
}

export const defaultMaxHeld = 5

export function createHeldLimit({ limit, now }: { limit: number; now: () => Date }): HeldLimit {
  const held = new Map<string, { since: number; until: number }>()
  const over = (): string[] => {
    const time = now().getTime()
    for (const [uid, { until }] of held) if (until <= time) held.delete(uid)
    if (held.size <= limit) return []
    const oldestFirst = [...held].sort(([left, a], [right, b]) => a.since - b.since || left.localeCompare(right))
    return oldestFirst.slice(0, held.size - limit).map(([uid]) => uid)
  }
  return {
    observe(task) {
      const { uid } = task.metadata
      const leftMs = holdLeftMs(task, now())
      if (leftMs === undefined) {
        held.delete(uid)
        return []
      }
      const since = Date.parse(task.status?.times?.finishedAt ?? '') || 0
      held.set(uid, { since, until: now().getTime() + leftMs })
      return over()
    },
    forget: (uid) => void held.delete(uid),
    isOver: (uid) => held.has(uid) && over().includes(uid),
  }
}
