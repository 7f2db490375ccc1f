import {
  isConditionTrue,
  nameHash,
  type Sandbox,
  type SandboxWarmPool,
  type SandboxWarmPoolStatus,
  type Stored,
} from '@corral/resources'
import { labels } from '../shared/names.js'
import { excessMembers } from './members.js'

export interface ScaleWorld {
  pool: Stored<SandboxWarmPool>
  active: readonly Stored<Sandbox>[]
  terminatingCount: number
  hasTemplate: boolean
  /** Time left of a replenish hold; 0 without one. */
  holdMs: number
  batchSize: number
}

export type ScaleAction =
  | { kind: 'rest' }
  | { kind: 'hold'; forMs: number }
  | { kind: 'create'; count: number }
  | { kind: 'delete'; members: Stored<Sandbox>[] }

/**
 * How many members to add or give up. Terminating ones still count against an addition: deletes take time, and the pool
 * never holds more than it was asked for.
 */
export function planScale(world: ScaleWorld): ScaleAction {
  const desired = desiredReplicas(world.pool)
  const current = world.active.length
  if (current > desired) {
    return { kind: 'delete', members: excessMembers(world.active, Math.min(current - desired, world.batchSize)) }
  }
  if (current >= desired || !world.hasTemplate) return { kind: 'rest' }
  if (world.holdMs > 0) return { kind: 'hold', forMs: world.holdMs }
  const missing = desired - current - world.terminatingCount
  return missing > 0 ? { kind: 'create', count: Math.min(missing, world.batchSize) } : { kind: 'rest' }
}

export function desiredReplicas(pool: Stored<SandboxWarmPool>): number {
  return pool.spec.replicas ?? 1
}

/** What the pool reports. Counters of zero are absent, as upstream's clients are used to. */
export function poolStatus(pool: Stored<SandboxWarmPool>, active: readonly Stored<Sandbox>[]): SandboxWarmPoolStatus {
  const replicas = active.length
  const readyReplicas = active.filter((sandbox) => isConditionTrue(sandbox.status?.conditions, 'Ready')).length
  return {
    ...(replicas > 0 && { replicas }),
    ...(readyReplicas > 0 && { readyReplicas }),
    selector: `${labels.warmPool}=${nameHash(pool.metadata.name)}`,
    observedGeneration: pool.metadata.generation ?? 0,
  }
}
