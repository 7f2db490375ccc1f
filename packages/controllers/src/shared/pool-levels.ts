import { isConditionTrue, type Sandbox, type SandboxWarmPool, type Stored } from '@corral/resources'
import type { ObjectKey } from '@corral/runtime'
import type { Store } from './informed-store.js'
import { poolOf } from './ownership.js'

/** Below this share of Ready members claims will soon find nothing. */
const lowShare = 0.1

export interface PoolLevels {
  /** Whether the pool (`namespace/name`) has next to no Ready members left of those it wants. */
  isLow(pool: ObjectKey): boolean
}

/** For a manager without pools. */
export const noPools: PoolLevels = { isLow: () => false }

/** Counts Ready members as their events come: what a pool's own pass saw is old by the time its writes go out. */
export function watchPoolLevels(
  sandboxes: Pick<Store<Sandbox>, 'onEvent'>,
  pools: Pick<Store<SandboxWarmPool>, 'get'>,
): PoolLevels {
  const ready = new Map<ObjectKey, number>()
  const count = (sandbox: Stored<Sandbox>, change: 1 | -1): void => {
    const pool = poolKeyOf(sandbox)
    if (pool === undefined || !isConditionTrue(sandbox.status?.conditions, 'Ready')) return
    const left = (ready.get(pool) ?? 0) + change
    if (left > 0) ready.set(pool, left)
    else ready.delete(pool)
  }
  sandboxes.onEvent((event) => {
    if (event.type === 'update') count(event.old, -1)
    count(event.object, event.type === 'delete' ? -1 : 1)
  })
  return {
    isLow(pool) {
      const wanted = pools.get(pool)?.spec.replicas ?? 0
      return (ready.get(pool) ?? 0) < wanted * lowShare
    },
  }
}

/** The pool that controls the Sandbox. */
export function poolKeyOf(sandbox: Stored<Sandbox>): ObjectKey | undefined {
  const pool = poolOf(sandbox)
  return pool === undefined ? undefined : `${sandbox.metadata.namespace ?? ''}/${pool}`
}
