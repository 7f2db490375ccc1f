import type { Condition } from './meta.js'
import { formatTime } from './time.js'

/** A condition to record. Without `lastTransitionTime` a change of status takes the time handed to `setCondition`. */
export type ConditionUpdate = Omit<Condition, 'lastTransitionTime'> & { lastTransitionTime?: string }

/**
 * The list with `update` in it. `lastTransitionTime` moves only when the status flips; reason, message and
 * observedGeneration are refreshed in place; an existing type keeps its position and a new one goes last. Answers the
 * same array when nothing changed, so callers compare by identity.
 */
export function setCondition(conditions: readonly Condition[], update: ConditionUpdate, now: Date): Condition[] {
  const index = conditions.findIndex(({ type }) => type === update.type)
  const existing = conditions[index]
  const transition = update.lastTransitionTime ?? formatTime(now)
  if (!existing) return [...conditions, { ...update, lastTransitionTime: transition }]

  const flipped = existing.status !== update.status
  const next: Condition = {
    ...existing,
    ...update,
    lastTransitionTime: flipped ? transition : existing.lastTransitionTime,
  }
  // The cast restores the caller's own array: nothing in it changed.
  if (sameCondition(existing, next)) return conditions as Condition[]
  return conditions.map((condition, i) => (i === index ? next : condition))
}

/** The list without the condition of that type; the same array where there is none. */
export function removeCondition(conditions: readonly Condition[], type: string): Condition[] {
  if (!conditions.some((condition) => condition.type === type)) return conditions as Condition[]
  return conditions.filter((condition) => condition.type !== type)
}

/** The condition of that type. Works for every kind's conditions, pods' and nodes' included. */
export function findCondition<T extends { type: string }>(
  conditions: readonly T[] | undefined,
  type: string,
): T | undefined {
  // Asked for every member of every pool on every pass: a loop is several times as fast as `find`.
  if (conditions) for (const condition of conditions) if (condition.type === type) return condition
  return undefined
}

/** Whether the condition exists with status `True`. */
export function isConditionTrue(
  conditions: readonly { type: string; status: string }[] | undefined,
  type: string,
): boolean {
  return findCondition(conditions, type)?.status === 'True'
}

function sameCondition(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration &&
    a.lastTransitionTime === b.lastTransitionTime
  )
}
