import {
  findCondition,
  isControlledBy,
  type KubeObject,
  removeCondition,
  type Sandbox,
  type SandboxStatus,
  type Stored,
  setCondition,
} from '@corral/resources'
import type { ChildAction } from './child-step.js'

/** A requeue "at once" after expiry was recorded: the next pass must start from what the server stored. */
export const immediatelyMs = 1
const shortestWaitMs = 2_000

export type Expiry = { expired: true } | { expired: false; requeueAfterMs?: number }

/** Whether the Sandbox's time is up, and if not, when to look again. */
export function sandboxExpiry(sandbox: Sandbox, now: Date): Expiry {
  const { shutdownTime } = sandbox.spec
  if (!shutdownTime) return { expired: false }
  const leftMs = Date.parse(shutdownTime) - now.getTime()
  return leftMs <= 0 ? { expired: true } : { expired: false, requeueAfterMs: Math.max(leftMs, shortestWaitMs) }
}

/** Expiry is recorded one pass before anything is deleted, so that a Pod never vanishes before the reason is in the status. */
export function isMarkedExpired(sandbox: Sandbox): boolean {
  return findCondition(sandbox.status?.conditions, 'Ready')?.reason === 'SandboxExpired'
}

export function markExpired(status: SandboxStatus, generation: number, now: Date): SandboxStatus {
  const remaining = removeCondition(status.conditions ?? [], 'PodScheduled')
  const ready = {
    type: 'Ready',
    status: 'False',
    reason: 'SandboxExpired',
    message: 'Sandbox has expired',
    observedGeneration: generation,
  } as const
  return { ...status, conditions: setCondition(remaining, ready, now) }
}

/** What is left of the status once the children are gone. */
export function expiredStatus(status: SandboxStatus, generation: number, now: Date): SandboxStatus {
  return markExpired({ conditions: status.conditions ?? [] }, generation, now)
}

/** What ends a Sandbox whose time is up: first its status says so, on a later pass its children or all of it go. */
export type ExpiryPlan = { move: 'mark' } | { move: 'end'; deletes: ChildAction[]; deletesItself: boolean }

export function planExpiry({
  sandbox,
  pod,
  service,
}: {
  sandbox: Stored<Sandbox>
  pod: Stored<KubeObject> | undefined
  service: Stored<KubeObject> | undefined
}): ExpiryPlan {
  if (!isMarkedExpired(sandbox)) return { move: 'mark' }
  const children = [
    { child: 'pod', object: pod },
    { child: 'service', object: service },
  ] as const
  const deletes = children.flatMap(({ child, object }): ChildAction[] => {
    if (!object || !isControlledBy(object, sandbox) || object.metadata.deletionTimestamp) return []
    const { name } = object.metadata
    return [{ kind: 'delete', child, name, missingIsFine: true, failure: `failed to delete ${child}` }]
  })
  return { move: 'end', deletes, deletesItself: sandbox.spec.shutdownPolicy === 'Delete' }
}
