import { isConflict, isNotFound, type Sandbox, Sandboxes, type SandboxTemplate, type Stored } from '@corral/resources'
import { slowStart } from '@corral/runtime'
import { memberSandbox } from './member-sandbox.js'
import type { Members } from './members.js'
import { desiredReplicas, planScale } from './plan.js'
import type { PoolReconcileContext } from './reconcile-context.js'

const expectationsRequeueMs = 30_000
const orphanRequeueMs = 500

/** Makes or deletes members until the pool has as many as it asks for, a batch at a time. */
export async function scale(context: PoolReconcileContext, members: Members): Promise<void> {
  const { key, pool, template, ports, memory } = context
  const desired = desiredReplicas(pool)
  const current = members.active.length + context.arriving
  const settlingMs = memory.settling.remainingMs(key, current, desired)
  const holdMs = Math.max(memory.holds.remainingMs(key, current, desired), current > 0 ? settlingMs : 0)
  const action = planScale({
    pool,
    active: members.active,
    terminatingCount: members.terminatingCount,
    hasTemplate: template !== undefined,
    holdMs,
    batchSize: ports.options.maxBatchSize,
  })
  if (action.kind === 'hold') context.requeues.push(action.forMs)
  if (action.kind === 'create' && template) await createMembers(context, template, action.count)
  if (action.kind === 'delete') await deleteMembers(context, action.members)
}

/** The refill has a lower priority than claims until the pool is nearly empty: then it has the same. */
async function createMembers(
  context: PoolReconcileContext,
  template: Stored<SandboxTemplate>,
  wanted: number,
): Promise<void> {
  const { key, pool, ports, memory, signal } = context
  const { granted, waitMs } = memory.refill.take(key, wanted)
  if (granted === 0) {
    if (waitMs !== undefined) context.requeues.push(waitMs)
    return
  }
  if (!ports.expectations.tryExpectCreations(key, granted)) {
    memory.refill.refund(key, granted)
    context.requeues.push(expectationsRequeueMs)
    return
  }
  const desired = memberSandbox(pool, template, { markEvictable: ports.options.markEvictable })
  const result = await slowStart(
    granted,
    async () => {
      const client = ports.levels.isLow(key) ? ports.client : ports.lowPriority
      await client.create(Sandboxes, desired, { signal })
    },
    signal,
  )
  ports.expectations.lowerCreations(key, granted - result.succeeded)
  if (result.error !== undefined) context.errors.push(result.error)
}

async function deleteMembers(context: PoolReconcileContext, members: readonly Stored<Sandbox>[]): Promise<void> {
  if (!context.ports.expectations.isSatisfied(context.key)) {
    context.requeues.push(expectationsRequeueMs)
    return
  }
  const { error } = await slowStart(
    members.length,
    async (index) => {
      const member = members[index]
      const before = context.errors.length
      if (member) await removeMember(context, member, { isOurs: true, missingIsFine: true })
      if (context.errors.length > before) throw context.errors.pop()
    },
    context.signal,
  )
  if (error !== undefined) context.errors.push(error)
}

/**
 * Deletes one Sandbox, but only as the pool saw it: one that a claim has taken in the meantime has another version, and
 * the server refuses. False means that it still counts as a member.
 */
export async function removeMember(
  context: PoolReconcileContext,
  sandbox: Stored<Sandbox>,
  { isOurs, missingIsFine }: { isOurs: boolean; missingIsFine: boolean },
): Promise<boolean> {
  const { key, ports, signal } = context
  const { name, namespace = '', uid, resourceVersion } = sandbox.metadata
  if (isOurs) ports.expectations.expectDeletion(key, uid)
  try {
    await ports.client.delete(Sandboxes, { name, namespace }, { preconditions: { uid, resourceVersion }, signal })
    return true
  } catch (error) {
    ports.expectations.clearDeletion(key, uid)
    if (isConflict(error)) {
      // A changed Sandbox may have another owner by now. Its event brings back a member's pool, not an orphan's.
      if (!isOurs) context.requeues.push(orphanRequeueMs)
    } else if (!(missingIsFine && isNotFound(error))) context.errors.push(error)
    return false
  }
}
