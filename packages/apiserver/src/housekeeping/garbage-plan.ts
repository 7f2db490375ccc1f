import type { ObjectMeta } from '@corral/resources'
import type { PropagationPolicy } from './housekeeping-store.js'

export const FOREGROUND_FINALIZER = 'foregroundDeletion'
export const ORPHAN_FINALIZER = 'orphan'

/** What became of an owner. `deletingForeground` waits for its dependents to go. */
export type OwnerState = 'alive' | 'gone' | 'deletingForeground'

export interface GarbageWorld {
  readonly metadata: ObjectMeta
  /** State of the owner with this uid, as seen from the object's namespace. */
  ownerState(uid: string): OwnerState
  /** Metadata of every object that names this one as an owner. */
  readonly dependents: readonly ObjectMeta[]
}

export type GarbagePlan =
  | { readonly action: 'keep' }
  | { readonly action: 'delete'; readonly propagationPolicy: PropagationPolicy }
  /** Some owners are gone, others live on: the references to the former go. */
  | { readonly action: 'dropOwners'; readonly uids: readonly string[] }
  | { readonly action: 'removeFinalizer'; readonly finalizer: string }
  /** The references of all dependents to this object go first, then its finalizer. */
  | { readonly action: 'orphanDependents' }
  /** Dependents are to be looked at now: their owner is on its way out. */
  | { readonly action: 'collectDependents' }

const keep: GarbagePlan = { action: 'keep' }

/** What garbage collection owes one object. Pure: everything it knows is in `world`. */
export function planGarbage(world: GarbageWorld): GarbagePlan {
  const { metadata } = world
  if (metadata.deletionTimestamp) return planDeleting(world)
  const owners = metadata.ownerReferences ?? []
  if (owners.length === 0) return keep

  const states = new Map(owners.map((owner) => [owner.uid, world.ownerState(owner.uid)]))
  const leaving = owners.filter((owner) => states.get(owner.uid) !== 'alive')
  if (leaving.length === 0) return keep
  if (leaving.length < owners.length) return { action: 'dropOwners', uids: leaving.map((owner) => owner.uid) }

  const isAwaited = owners.some((owner) => states.get(owner.uid) === 'deletingForeground')
  // An owner that waits is to see everything below go, so the wait continues one level down.
  const isDeep = isAwaited && world.dependents.length > 0
  return { action: 'delete', propagationPolicy: isDeep ? 'Foreground' : policyOf(metadata) }
}

function planDeleting({ metadata, dependents }: GarbageWorld): GarbagePlan {
  if (metadata.finalizers?.includes(ORPHAN_FINALIZER)) return { action: 'orphanDependents' }
  if (!metadata.finalizers?.includes(FOREGROUND_FINALIZER)) return keep
  const isBlocked = dependents.some((dependent) => blocks(dependent, metadata.uid))
  return isBlocked ? { action: 'collectDependents' } : { action: 'removeFinalizer', finalizer: FOREGROUND_FINALIZER }
}

function blocks(dependent: ObjectMeta, ownerUid: string | undefined): boolean {
  return (dependent.ownerReferences ?? []).some((owner) => owner.uid === ownerUid && owner.blockOwnerDeletion === true)
}

function policyOf(metadata: ObjectMeta): PropagationPolicy {
  if (metadata.finalizers?.includes(ORPHAN_FINALIZER)) return 'Orphan'
  return metadata.finalizers?.includes(FOREGROUND_FINALIZER) ? 'Foreground' : 'Background'
}

/** An owner's state from its metadata; undefined is an owner that does not exist. */
export function ownerStateOf(owner: ObjectMeta | undefined): OwnerState {
  if (!owner) return 'gone'
  const isWaiting = owner.deletionTimestamp !== undefined && owner.finalizers?.includes(FOREGROUND_FINALIZER) === true
  return isWaiting ? 'deletingForeground' : 'alive'
}
