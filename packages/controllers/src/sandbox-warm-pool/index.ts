import { isConditionTrue, type Sandbox, SandboxWarmPools, type Stored, semanticEqual } from '@corral/resources'
import {
  controllingOwner,
  type Expectations,
  enqueueEvent,
  itself,
  keyOf,
  type ObjectEvent,
  type ObjectKey,
  type WorkQueue,
} from '@corral/runtime'
import { type CoreState, type ExtensionsState, indexes } from '../shared/cluster-state.js'

export type { PoolOptions } from './ports.js'
export { poolReconciler } from './reconciler.js'

const owner = controllingOwner(SandboxWarmPools)

/** A pass looks at every member, and many change at once: events within this time share a pass, longer for larger pools. */
const gatherMs = (members: number): number => 10 + members / 20

/** Wakes pools for their own events, their members' and their template's; confirms what they expect to see. */
export function watchPools(state: CoreState & ExtensionsState, queue: WorkQueue, expectations: Expectations): void {
  state.pools.onEvent((event) => enqueueEvent(queue, event, itself))
  state.sandboxes.onEvent((event) => {
    confirm(expectations, event)
    if (!concernsPool(event)) return
    const gather = (pool: ObjectKey): void =>
      queue.addAfter(pool, gatherMs(state.pools.get(pool)?.status?.replicas ?? 0))
    if (event.type === 'update') for (const pool of owner(event.old)) gather(pool)
    for (const pool of owner(event.object)) gather(pool)
  })
  state.templates.onEvent((event) =>
    enqueueEvent(queue, event, (template) => state.pools.byIndex(indexes.templateRef, keyOf(template)).map(keyOf)),
  )
}

/** A pool counts members and Ready ones; what else happens to a member is not its business. */
export function concernsPool(event: ObjectEvent<Stored<Sandbox>>): boolean {
  if (event.type !== 'update') return true
  const { old, object } = event
  return (
    isConditionTrue(old.status?.conditions, 'Ready') !== isConditionTrue(object.status?.conditions, 'Ready') ||
    old.metadata.deletionTimestamp !== object.metadata.deletionTimestamp ||
    old.metadata.generation !== object.metadata.generation ||
    !semanticEqual(old.metadata.labels, object.metadata.labels) ||
    !semanticEqual(old.metadata.ownerReferences, object.metadata.ownerReferences)
  )
}

/** Lowers what the Sandbox's pool waits for. A member that a claim took away is confirmed gone under its old owner. */
export function confirm(expectations: Expectations, event: ObjectEvent<Stored<Sandbox>>): void {
  const { object } = event
  if (event.type === 'update') {
    for (const pool of owner(event.old)) {
      if (![...owner(object)].includes(pool)) expectations.clearDeletion(pool, object.metadata.uid)
    }
    return
  }
  for (const pool of owner(object)) {
    if (event.type === 'add') expectations.lowerCreations(pool)
    else expectations.clearDeletion(pool, object.metadata.uid)
  }
}
