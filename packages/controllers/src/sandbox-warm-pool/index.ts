import { type Sandbox, SandboxWarmPools, type Stored } from '@corral/resources'
import {
  controllingOwner,
  type Expectations,
  enqueueEvent,
  itself,
  keyOf,
  type ObjectEvent,
  type WorkQueue,
} from '@corral/runtime'
import { type CoreState, type ExtensionsState, indexes } from '../cluster-state.js'

export { type PoolOptions, type PoolPorts, poolReconciler } from './reconciler.js'

const owner = controllingOwner(SandboxWarmPools)

/** Wakes pools for their own events, their members' and their template's; confirms what they expect to see. */
export function watchPools(state: CoreState & ExtensionsState, queue: WorkQueue, expectations: Expectations): void {
  state.pools.onEvent((event) => enqueueEvent(queue, event, itself))
  state.sandboxes.onEvent((event) => {
    confirm(expectations, event)
    enqueueEvent(queue, event, owner)
  })
  state.templates.onEvent((event) =>
    enqueueEvent(queue, event, (template) => state.pools.byIndex(indexes.templateRef, keyOf(template)).map(keyOf)),
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
