import type { KubeClient } from '@corral/kube'
import {
  type Clock,
  formatMilliseconds,
  isConflict,
  isNotFound,
  nameHash,
  ownerReferenceTo,
  type Sandbox,
  Sandboxes,
  type SandboxTemplate,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { type Expectations, type Reconcile, type ReconcileResult, slowStart } from '@corral/runtime'
import { type CoreState, type ExtensionsState, indexes } from '../cluster-state.js'
import { combineErrors, StepError } from '../error-text.js'
import type { EventRecorder } from '../event-recorder.js'
import type { LaterBehaviour } from '../later-behaviour.js'
import { mergeDiff } from '../merge-diff.js'
import { labels } from '../names.js'
import { quote } from '../ownership.js'
import { podNameOf } from '../sandbox/pod-plan.js'
import { memberSandbox } from './member-sandbox.js'
import { classifyMembers, findStuck, type Members, type PoolWorld } from './members.js'
import { desiredReplicas, planScale, poolStatus } from './plan.js'
import { RefillBuckets, ReplenishHolds } from './refill.js'

export interface PoolOptions {
  maxBatchSize: number
  replenishDelayMs: number
  maxRefillPerSecond: number
  readinessGraceMs: number
  unschedulableRecheckMs: number
  markEvictable: boolean
  /** What later releases of upstream do; nothing of it without. */
  later?: LaterBehaviour
}

export interface PoolPorts {
  client: KubeClient
  /** The same server for writes that nobody waits for. */
  patient: KubeClient
  state: CoreState & ExtensionsState
  /** Writes whose events are still to come; fed by the pool's watches. */
  expectations: Expectations
  events: EventRecorder
  clock: Clock
  /** Between 0 and 1; spreads the requeues of many pools. */
  random: () => number
  options: PoolOptions
}

const expectationsRequeueMs = 30_000
const lowShare = 0.25

interface Memory {
  refill: RefillBuckets
  holds: ReplenishHolds
  notProgressing: Set<string>
}

interface Pass {
  key: string
  pool: Stored<SandboxWarmPool>
  template: Stored<SandboxTemplate> | undefined
  ports: PoolPorts
  memory: Memory
  signal: AbortSignal
  /** Members asked for and not yet seen, as of the moment the members were listed. */
  arriving: number
  errors: unknown[]
  requeues: number[]
}

/** Keeps as many warm Sandboxes as the pool asks for, of the template it names. */
export function poolReconciler(ports: PoolPorts): Reconcile {
  const { clock, options, state } = ports
  const memory: Memory = {
    refill: new RefillBuckets(clock, options.maxRefillPerSecond),
    holds: new ReplenishHolds(clock, options.replenishDelayMs),
    notProgressing: new Set(),
  }
  return async ({ key, namespace, signal }) => {
    const pool = state.pools.get(key)
    if (!pool || pool.metadata.deletionTimestamp) {
      ports.expectations.forget(key)
      memory.refill.forget(key)
      memory.holds.forget(key)
      memory.notProgressing.delete(key)
      return {}
    }
    const template = state.templates.get(`${namespace}/${pool.spec.sandboxTemplateRef.name}`)
    const arriving = ports.expectations.pendingCreations(key)
    const pass: Pass = { key, pool, template, ports, memory, signal, arriving, errors: [], requeues: [] }
    return reconcilePool(pass)
  }
}

async function reconcilePool(pass: Pass): Promise<ReconcileResult> {
  const { key, pool, template, ports } = pass
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
    sparesGated: options.later?.gatedMembers === true,
  }
  const members = await settleMembers(pass, classifyMembers(world))
  const stuck = findStuck(members.active, world)
  for (const sandbox of stuck.stuck) {
    if (!(await removeMember(pass, sandbox, { isOurs: true, missingIsFine: false }))) continue
    members.active = members.active.filter((member) => member !== sandbox)
    members.terminatingCount += 1
  }

  const status = poolStatus(pool, members.active)
  await scale(pass, members)
  const obstacle = obstacleText(pass, stuck.unschedulableCount)
  reportProgress(pass, obstacle)
  if (obstacle !== undefined) pass.requeues.push(options.unschedulableRecheckMs)
  if (stuck.nextDeadlineMs !== undefined) pass.requeues.push(stuck.nextDeadlineMs * (1 + ports.random() / 2))
  if (pass.errors.length > 0) throw combineErrors(pass.errors)
  await writeStatus(pass, status)
  return pass.requeues.length > 0 ? { requeueAfterMs: Math.min(...pass.requeues) } : {}
}

/** Deletes the stale, labels the unlabelled, takes in the orphans. What fails is left out of this pass's count. */
async function settleMembers(pass: Pass, members: Members): Promise<Members> {
  const { pool, ports, signal } = pass
  for (const sandbox of members.stale) {
    if (await removeMember(pass, sandbox, { isOurs: true, missingIsFine: false })) members.terminatingCount += 1
  }
  for (const sandbox of members.staleOrphans) await removeMember(pass, sandbox, { isOurs: false, missingIsFine: false })
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
      pass.errors.push(error)
    }
  }
  return members
}

async function scale(pass: Pass, members: Members): Promise<void> {
  const { key, pool, template, ports, memory } = pass
  const desired = desiredReplicas(pool)
  const holdMs = memory.holds.remainingMs(key, members.active.length + pass.arriving, desired)
  const action = planScale({
    pool,
    active: members.active,
    terminatingCount: members.terminatingCount,
    hasTemplate: template !== undefined,
    holdMs,
    batchSize: ports.options.maxBatchSize,
  })
  if (action.kind === 'hold') pass.requeues.push(action.forMs)
  const isLow = members.active.length < desired * lowShare
  if (action.kind === 'create' && template) await createMembers(pass, template, action.count, isLow)
  if (action.kind === 'delete') await deleteMembers(pass, action.members)
}

/** `isLow` says that claims will soon find nothing: then the refill is as urgent as they are. */
async function createMembers(
  pass: Pass,
  template: Stored<SandboxTemplate>,
  wanted: number,
  isLow: boolean,
): Promise<void> {
  const { key, pool, ports, memory, signal } = pass
  const { granted, waitMs } = memory.refill.take(key, wanted)
  if (granted === 0) {
    if (waitMs !== undefined) pass.requeues.push(waitMs)
    return
  }
  if (!ports.expectations.tryExpectCreations(key, granted)) {
    memory.refill.refund(key, granted)
    pass.requeues.push(expectationsRequeueMs)
    return
  }
  const desired = memberSandbox(pool, template, { markEvictable: ports.options.markEvictable })
  const client = isLow ? ports.client : ports.patient
  const result = await slowStart(
    granted,
    async () => {
      await client.create(Sandboxes, desired, { signal })
    },
    signal,
  )
  ports.expectations.lowerCreations(key, granted - result.succeeded)
  if (result.error !== undefined) pass.errors.push(result.error)
}

async function deleteMembers(pass: Pass, members: readonly Stored<Sandbox>[]): Promise<void> {
  if (!pass.ports.expectations.isSatisfied(pass.key)) {
    pass.requeues.push(expectationsRequeueMs)
    return
  }
  const { error } = await slowStart(
    members.length,
    async (index) => {
      const member = members[index]
      const before = pass.errors.length
      if (member) await removeMember(pass, member, { isOurs: true, missingIsFine: true })
      if (pass.errors.length > before) throw pass.errors.pop()
    },
    pass.signal,
  )
  if (error !== undefined) pass.errors.push(error)
}

/**
 * Deletes one Sandbox, but only as the pool saw it: one that a claim has taken in the meantime has another version, and
 * the server refuses. False means that it still counts as a member.
 */
async function removeMember(
  pass: Pass,
  sandbox: Stored<Sandbox>,
  { isOurs, missingIsFine }: { isOurs: boolean; missingIsFine: boolean },
): Promise<boolean> {
  const { key, ports, signal } = pass
  const { name, namespace = '', uid, resourceVersion } = sandbox.metadata
  if (isOurs) ports.expectations.expectDeletion(key, uid)
  try {
    await ports.client.delete(Sandboxes, { name, namespace }, { preconditions: { uid, resourceVersion }, signal })
    return true
  } catch (error) {
    ports.expectations.clearDeletion(key, uid)
    // A changed Sandbox is looked at again when its event arrives; it may be somebody else's by now.
    if (!isConflict(error) && !(missingIsFine && isNotFound(error))) pass.errors.push(error)
    return false
  }
}

/** Why the pool cannot get fuller by itself, where it cannot. */
function obstacleText({ pool, template, ports: { options } }: Pass, unschedulableCount: number): string | undefined {
  const desired = desiredReplicas(pool)
  if (unschedulableCount > 0) {
    const grace = formatMilliseconds(options.readinessGraceMs)
    return `${unschedulableCount}/${desired} sandboxes are unschedulable past the ${grace} readiness grace period; holding them instead of replacing (replacements would be equally unschedulable)`
  }
  if (template || desired === 0 || !options.later?.poolWithoutTemplate) return undefined
  return `SandboxTemplate ${quote(pool.spec.sandboxTemplateRef.name)} not found`
}

function reportProgress(pass: Pass, obstacle: string | undefined): void {
  const { key, pool, ports, memory } = pass
  const was = memory.notProgressing.has(key)
  if (obstacle !== undefined && !was) {
    memory.notProgressing.add(key)
    const note = { action: 'Reconciling', note: obstacle }
    ports.events.record(pool, { type: 'Warning', reason: 'WarmPoolNotProgressing', ...note })
  }
  if (obstacle === undefined && was) {
    memory.notProgressing.delete(key)
    const note = 'Warm pool is progressing again'
    ports.events.record(pool, { type: 'Normal', reason: 'WarmPoolProgressing', action: 'Reconciling', note })
  }
}

async function writeStatus({ pool, ports, signal }: Pass, status: ReturnType<typeof poolStatus>): Promise<void> {
  const diff = mergeDiff(pool.status ?? {}, status)
  if (!diff) return
  const { name, namespace = '' } = pool.metadata
  const patch = { type: 'merge', body: { status: diff } } as const
  try {
    const options = { subresource: 'status', signal }
    ports.state.pools.remember(await ports.patient.patch(SandboxWarmPools, { name, namespace }, patch, options))
  } catch (error) {
    throw new StepError('failed to update SandboxWarmPool status', error)
  }
}
