import { nameHash, ownerReferenceTo, podNameOf, Sandboxes, SandboxWarmPools } from '@corral/resources'
import type { Reconcile, ReconcileResult } from '@corral/runtime'
import { indexes } from '../shared/cluster-state.js'
import { combineErrors, StepError } from '../shared/error-text.js'
import { mergeDiff } from '../shared/merge-diff.js'
import { labels } from '../shared/names.js'
import { classifyMembers, findStuck, type Members, type PoolWorld } from './members.js'
import { poolStatus } from './plan.js'
import type { PoolPorts } from './ports.js'
import { obstacleText, reportProgress } from './progress.js'
import type { PoolMemory, PoolReconcileContext } from './reconcile-context.js'
import { RefillBuckets, ReplenishHolds } from './refill.js'
import { removeMember, scale } from './scale.js'

/** Keeps as many warm Sandboxes as the pool asks for, of the template it names. */
export function poolReconciler(ports: PoolPorts): Reconcile {
  const { clock, options, state } = ports
  const memory: PoolMemory = {
    refill: new RefillBuckets(clock, options.maxRefillPerSecond),
    holds: new ReplenishHolds(clock, options.replenishDelayMs),
    settling: new ReplenishHolds(clock, options.settleMs ?? 0, true),
    notProgressing: new Set(),
  }
  return async ({ key, namespace, signal }) => {
    const pool = state.pools.get(key)
    if (!pool || pool.metadata.deletionTimestamp) {
      ports.expectations.forget(key)
      memory.refill.forget(key)
      memory.holds.forget(key)
      memory.settling.forget(key)
      memory.notProgressing.delete(key)
      return {}
    }
    const template = state.templates.get(`${namespace}/${pool.spec.sandboxTemplateRef.name}`)
    const arriving = ports.expectations.pendingCreations(key)
    const context: PoolReconcileContext = {
      key,
      pool,
      template,
      ports,
      memory,
      signal,
      arriving,
      errors: [],
      requeues: [],
    }
    return reconcilePool(context)
  }
}

async function reconcilePool(context: PoolReconcileContext): Promise<ReconcileResult> {
  const { key, pool, template, ports } = context
  const { state, options, expectations, clock } = ports
  const namespace = pool.metadata.namespace ?? ''
  const world: PoolWorld = {
    pool,
    template,
    listed: state.sandboxes.byIndex(indexes.warmPool, `${namespace}/${nameHash(pool.metadata.name)}`),
    isBeingDeleted: (uid) => expectations.isDeletionExpected(key, uid),
    findPod: (sandbox) => state.pods.get(`${namespace}/${podNameOf(sandbox)}`),
    now: clock.now(),
    readinessGraceMs: options.readinessGraceMs,
    sparesGated: options.upstreamRelease?.gatedMembers === true,
  }
  const members = await settleMembers(context, classifyMembers(world))
  const stuck = findStuck(members.active, world)
  for (const sandbox of stuck.stuck) {
    if (!(await removeMember(context, sandbox, { isOurs: true, missingIsFine: false }))) continue
    members.active = members.active.filter((member) => member !== sandbox)
    members.terminatingCount += 1
  }

  const status = poolStatus(pool, members.active)
  await scale(context, members)
  const obstacle = obstacleText(context, stuck.unschedulableCount)
  reportProgress(context, obstacle)
  if (obstacle !== undefined) context.requeues.push(options.unschedulableRecheckMs)
  if (stuck.nextDeadlineMs !== undefined) context.requeues.push(stuck.nextDeadlineMs * (1 + ports.random() / 2))
  if (context.errors.length > 0) throw combineErrors(context.errors)
  await writeStatus(context, status)
  return context.requeues.length > 0 ? { requeueAfterMs: Math.min(...context.requeues) } : {}
}

/** Deletes the stale, labels the unlabelled, takes in the orphans. What fails is left out of this pass's count. */
async function settleMembers(context: PoolReconcileContext, members: Members): Promise<Members> {
  const { pool, ports, signal } = context
  for (const sandbox of members.stale) {
    if (await removeMember(context, sandbox, { isOurs: true, missingIsFine: false })) members.terminatingCount += 1
  }
  for (const sandbox of members.staleOrphans)
    await removeMember(context, sandbox, { isOurs: false, missingIsFine: false })
  const adopt = [
    ...members.unlabelled.map((sandbox) => ({ sandbox, ownerReferences: sandbox.metadata.ownerReferences ?? [] })),
    ...members.orphans.map((sandbox) => ({
      sandbox,
      ownerReferences: [...(sandbox.metadata.ownerReferences ?? []), ownerReferenceTo(pool, SandboxWarmPools)],
    })),
  ]
  for (const { sandbox, ownerReferences } of adopt) {
    const { name, namespace = '', resourceVersion } = sandbox.metadata
    const body = { metadata: { resourceVersion, ownerReferences, labels: { [labels.launchType]: 'warm' } } }
    try {
      const patched = await ports.client.patch(Sandboxes, { name, namespace }, { type: 'merge', body }, { signal })
      members.active.push(ports.state.sandboxes.remember(patched))
    } catch (error) {
      context.errors.push(error)
    }
  }
  return members
}

async function writeStatus(
  { pool, ports, signal }: PoolReconcileContext,
  status: ReturnType<typeof poolStatus>,
): Promise<void> {
  const diff = mergeDiff(pool.status ?? {}, status)
  if (!diff) return
  const { name, namespace = '' } = pool.metadata
  const patch = { type: 'merge', body: { status: diff } } as const
  try {
    const options = { subresource: 'status', signal }
    ports.state.pools.remember(await ports.lowPriority.patch(SandboxWarmPools, { name, namespace }, patch, options))
  } catch (error) {
    throw new StepError('failed to update SandboxWarmPool status', error)
  }
}
