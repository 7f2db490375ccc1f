import {
  findCondition,
  type Sandbox,
  SandboxClaims,
  type SandboxWarmPool,
  type Stored,
  semanticEqual,
} from '@corral/resources'
import {
  controllingOwner,
  enqueueEvent,
  generationChanged,
  itself,
  keyOf,
  type ObjectEvent,
  type ObjectKey,
  type WorkQueue,
} from '@corral/runtime'
import { type CoreState, type ExtensionsState, indexes } from '../shared/cluster-state.js'
import { poolOf } from '../shared/ownership.js'
import { isReachable, whyNotAdoptable } from './adoptable.js'
import type { ObservedTimes } from './observed-times.js'
import type { WarmQueue } from './warm-queue.js'

export { ObservedTimes } from './observed-times.js'
export { defaultLabelDomains } from './pod-metadata.js'
export type { ClaimOptions } from './ports.js'
export { claimReconciler } from './reconciler.js'
export { WarmQueue } from './warm-queue.js'

/** Wakes claims for what concerns them, and keeps the warm queue and the first-seen times. */
export function watchClaims(
  state: CoreState & ExtensionsState,
  queue: WorkQueue,
  warm: WarmQueue,
  observed: ObservedTimes,
): void {
  const owner = controllingOwner(SandboxClaims)
  state.claims.onEvent((event) => {
    if (event.type === 'delete') observed.drop(event.object)
    else observed.of(event.object)
    enqueueEvent(queue, event, itself)
  })
  state.sandboxes.onEvent((event) => {
    offerWarm(warm, event)
    enqueueEvent(queue, event, owner, concernsClaim)
  })
  state.pools.onEvent((event) => {
    if (event.type === 'delete') warm.removePool(keyOf(event.object))
    enqueueEvent(queue, event, (pool) => waitingClaims(state, pool), generationChanged)
  })
  state.templates.onEvent((event) => {
    if (event.type !== 'add') return
    enqueueEvent(queue, event, (template) => claimsOfTemplate(state, keyOf(template)))
  })
}

/** A claim mirrors addresses, Ready and Finished of its sandbox; nothing else about it is news. */
export function concernsClaim(event: ObjectEvent<Stored<Sandbox>>): boolean {
  if (event.type !== 'update') return true
  const { old, object } = event
  return (
    Boolean(old.metadata.deletionTimestamp) !== Boolean(object.metadata.deletionTimestamp) ||
    !semanticEqual(old.status?.podIPs, object.status?.podIPs) ||
    (old.status?.serviceFQDN ?? '') !== (object.status?.serviceFQDN ?? '') ||
    ['Ready', 'Finished'].some(
      (type) =>
        !semanticEqual(findCondition(old.status?.conditions, type), findCondition(object.status?.conditions, type)),
    )
  )
}

/** Keeps the queue of warm sandboxes in step with what exists. */
export function offerWarm(warm: WarmQueue, event: ObjectEvent<Stored<Sandbox>>): void {
  const { object } = event
  const pool = poolOf(object)
  const oldPool = event.type === 'update' ? poolOf(event.old) : undefined
  if (oldPool !== undefined && oldPool !== pool)
    warm.remove(`${object.metadata.namespace ?? ''}/${oldPool}`, keyOf(object))
  if (pool === undefined) return
  const line = `${object.metadata.namespace ?? ''}/${pool}`
  if (event.type === 'delete') {
    warm.remove(line, keyOf(object))
    return
  }
  if (whyNotAdoptable(object)) return
  const old = event.type === 'update' ? event.old : undefined
  const isNews =
    !old ||
    whyNotAdoptable(old) ||
    poolOf(old) !== pool ||
    old.status?.nodeName !== object.status?.nodeName ||
    isReachable(old) !== isReachable(object)
  if (!isNews) return
  const item = { key: keyOf(object), nodeName: object.status?.nodeName ?? '' }
  if (isReachable(object)) warm.add(line, item)
  else warm.setAside(line, item)
}

export function* waitingClaims(state: ExtensionsState, pool: Stored<SandboxWarmPool>): Iterable<ObjectKey> {
  for (const claim of state.claims.byIndex(indexes.poolRef, keyOf(pool))) {
    if (!claim.status?.sandbox?.name && !claim.metadata.deletionTimestamp) yield keyOf(claim)
  }
}

export function* claimsOfTemplate(state: ExtensionsState, template: ObjectKey): Iterable<ObjectKey> {
  for (const pool of state.pools.byIndex(indexes.templateRef, template)) {
    for (const claim of state.claims.byIndex(indexes.poolRef, keyOf(pool))) {
      if (!claim.metadata.deletionTimestamp) yield keyOf(claim)
    }
  }
}
