import type { Condition } from '@corral/resources'

/** A condition before it is stored: the list decides when its transition time moves. */
export type ConditionDraft = Omit<Condition, 'lastTransitionTime'> & { lastTransitionTime?: string }

/**
 * The list with the condition put in. Its time moves only when the status flips, to the draft's own time if it has one.
 * A known type keeps its place, a new one goes to the end. The given list is left alone.
 */
export function withCondition(list: readonly Condition[], draft: ConditionDraft, now: Date): Condition[] {
  const known = list.find((condition) => condition.type === draft.type)
  const flipped = known?.status !== draft.status
  const lastTransitionTime = flipped ? (draft.lastTransitionTime ?? timestamp(now)) : known.lastTransitionTime
  const next: Condition = { ...draft, lastTransitionTime }
  return known ? list.map((condition) => (condition === known ? next : condition)) : [...list, next]
}

export function withoutCondition(list: readonly Condition[], type: string): Condition[] {
  return list.filter((condition) => condition.type !== type)
}

export function conditionOf(list: readonly Condition[] | undefined, type: string): Condition | undefined {
  return list?.find((condition) => condition.type === type)
}

export function isTrue(list: readonly Condition[] | undefined, type: string): boolean {
  return conditionOf(list, type)?.status === 'True'
}

/** A time as Kubernetes writes it: whole seconds, UTC. */
export function timestamp(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`
}
