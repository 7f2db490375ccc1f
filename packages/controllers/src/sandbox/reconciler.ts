import {
  findCondition,
  isConditionTrue,
  isControlledBy,
  isNotFound,
  nameHash,
  type Pod,
  Pods,
  type Sandbox,
  Sandboxes,
  type SandboxStatus,
  type Stored,
} from '@corral/resources'
import type { Reconcile, ReconcileResult } from '@corral/runtime'
import { indexes } from '../cluster-state.js'
import { combineErrors, errorText, isNamespaceTerminating, StepError } from '../error-text.js'
import { mergeDiff } from '../merge-diff.js'
import { annotations, labels, normalizeCreatedBy } from '../names.js'
import { isExtensionsOwner, quote } from '../ownership.js'
import type { Span } from '../tracing.js'
import type { ChildOutcome } from './child-step.js'
import { Deferrals } from './deferrals.js'
import { expiredStatus, immediatelyMs, isMarkedExpired, markExpired, sandboxExpiry } from './expiry.js'
import { explainPod } from './explain.js'
import { ChildExists, performStep } from './perform.js'
import { type PodWorld, planPod, podNameOf } from './pod-plan.js'
import type { SandboxPorts } from './ports.js'
import { planPvcs } from './pvc-plan.js'
import { planService } from './service-plan.js'
import { isNodeNameOnly, isRefusedForGood, multiplePodsText, sandboxStatus } from './status.js'
import { sandboxTransitions, transitionNote } from './transitions.js'

/** A namespace that is going away refuses every create for as long as it takes. */
const namespaceTerminatingRequeueMs = 30_000

interface Pass {
  key: string
  sandbox: Stored<Sandbox>
  hash: string
  span: Span
  signal: AbortSignal
}

/** Keeps a Sandbox's Pod, Service and volumes as its spec says and its status true. */
export function sandboxReconciler(all: SandboxPorts): Reconcile {
  const deferrals = new Deferrals(all.options.writeBehindWindowMs)

  const patiently = { ...all, client: all.patient }

  return async ({ key, signal }) => {
    const sandbox = all.state.sandboxes.get(key)
    if (!sandbox || sandbox.metadata.deletionTimestamp) {
      deferrals.end(key)
      return {}
    }
    const ports = isAwaited(sandbox) ? all : patiently
    return ports.tracer.span('ReconcileSandbox', sandbox, spanAttributes(sandbox), async (span) => {
      const traced = await stampTrace(sandbox, span, ports, signal)
      const pass: Pass = { key, sandbox: traced, hash: nameHash(traced.metadata.name), span, signal }
      try {
        const expired = sandboxExpiry(traced, ports.clock.now()).expired
        return expired ? await expire(pass, ports) : await lookAfterChildren(pass, ports, deferrals)
      } catch (error) {
        if (isNamespaceTerminating(error)) return { requeueAfterMs: namespaceTerminatingRequeueMs }
        throw error
      }
    })
  }
}

/** Whether somebody may be waiting for the Sandbox: not for a pool's spare ones, and no more once it is Ready. */
function isAwaited({ metadata, spec, status }: Stored<Sandbox>): boolean {
  if (spec.operatingMode === 'Suspended') return true
  const controller = metadata.ownerReferences?.find((owner) => owner.controller)
  return !isExtensionsOwner(controller, 'SandboxWarmPool') && !isConditionTrue(status?.conditions, 'Ready')
}

async function lookAfterChildren(pass: Pass, ports: SandboxPorts, deferrals: Deferrals): Promise<ReconcileResult> {
  const { key, sandbox, hash, span, signal } = pass
  const { state, clock, options } = ports
  const namespace = sandbox.metadata.namespace ?? ''
  const findPvc = (name: string): ReturnType<typeof state.pvcs.get> => state.pvcs.get(`${namespace}/${name}`)

  const pvcs = await span.child('reconcilePVCs', () =>
    performStep(planPvcs({ sandbox, nameHash: hash, findPvc }), sandbox, ports, signal),
  )
  const pod = await span.child('reconcilePod', (podSpan) => reconcilePod({ ...pass, span: podSpan }, ports, deferrals))
  const service = pod.multiplePods
    ? { errors: [] }
    : await performStep(
        planService({ sandbox, nameHash: hash, service: state.services.get(key) }),
        sandbox,
        ports,
        signal,
      )
  if (pod.multiplePods) reportMultiplePods(sandbox, pod.multiplePods.count, ports)

  const now = clock.now()
  let status = sandboxStatus({
    sandbox,
    nameHash: hash,
    clusterDomain: options.clusterDomain,
    pvcErrors: pvcs.errors,
    pod,
    multiplePods: pod.multiplePods,
    service,
    now,
    explain: options.explainNotReady ? (found) => explainPod(found) ?? ports.warnings?.latest(found) : undefined,
    later: options.later,
  })
  const expiry = sandboxExpiry(sandbox, now)
  if (expiry.expired) status = markExpired(status, sandbox.metadata.generation ?? 0, now)
  const requeues = [expiry.expired ? immediatelyMs : expiry.requeueAfterMs]

  const errors = [...pvcs.errors, ...pod.errors, ...service.errors]
  if (pod.deferredMs !== undefined && errors.length === 0) {
    requeues.push(pod.deferredMs)
    deferrals.begin(key, now)
  } else if (errors.length === 0) deferrals.end(key)
  reportPod(sandbox, pod, ports)
  const isFinal = options.later?.invalidConfiguration === true && isRefusedForGood(errors)
  const unwritten = await writeStatus(pass, status, ports)
  if (errors.length > 0 && !isFinal) throw combineErrors([...errors, ...unwritten])
  if (unwritten.length > 0) throw combineErrors(unwritten)
  return soonest(requeues)
}

interface PodOutcome extends ChildOutcome<Stored<Pod>> {
  multiplePods?: { count: number }
  deferredMs?: number
  /** A Pod was to be made; whether it was, the object and the errors say. */
  creates?: boolean
}

async function reconcilePod(pass: Pass, ports: SandboxPorts, deferrals: Deferrals): Promise<PodOutcome> {
  const { key, sandbox, hash, signal } = pass
  const { state, client, clock } = ports
  const namespace = sandbox.metadata.namespace ?? ''
  const world: PodWorld = {
    sandbox,
    nameHash: hash,
    hashedPods: state.pods.byIndex(indexes.nameHash, `${namespace}/${hash}`),
    namedPod: state.pods.get(`${namespace}/${podNameOf(sandbox)}`),
    deferMs: deferrals.leftMs(key, clock.now()),
  }
  try {
    return await follow(world)
  } catch (error) {
    if (!(error instanceof ChildExists)) throw error
    // Somebody was faster, or our view is old: look at what is really there and plan once more.
    try {
      const existing = await client.get(Pods, { name: sandbox.metadata.name, namespace }, { signal })
      return await follow({ ...world, namedPod: existing })
    } catch (failure) {
      return { errors: [new StepError('pod already exists but failed to fetch', failure)] }
    }
  }

  async function follow(current: PodWorld): Promise<PodOutcome> {
    const step = planPod(current)
    const outcome = await performStep(step, sandbox, ports, signal)
    if (step.ownedCount > 1) return { errors: [], multiplePods: { count: step.ownedCount } }
    if (outcome.object) {
      const name = step.found ? 'ExistingPodStatusObserved' : 'NewPodStatusObserved'
      const { metadata, status } = outcome.object
      pass.span.event(name, { 'pod.Name': metadata.name, 'pod.Phase': status?.phase ?? '' })
    }
    const creates = step.actions.some(({ kind }) => kind === 'create')
    return { ...outcome, creates, ...(step.deferred && { deferredMs: current.deferMs }) }
  }
}

async function expire(pass: Pass, ports: SandboxPorts): Promise<ReconcileResult> {
  const { key, sandbox, signal } = pass
  const { client, state, clock } = ports
  const generation = sandbox.metadata.generation ?? 0
  if (!isMarkedExpired(sandbox)) {
    const errors = await writeStatus(pass, markExpired(sandbox.status ?? {}, generation, clock.now()), ports)
    if (errors.length > 0) throw combineErrors(errors)
    return { requeueAfterMs: immediatelyMs }
  }

  const namespace = sandbox.metadata.namespace ?? ''
  const pod = state.pods.get(`${namespace}/${podNameOf(sandbox)}`)
  const service = state.services.get(key)
  const children = { found: undefined, actions: [] as Parameters<typeof performStep>[0]['actions'] }
  const errors: unknown[] = []
  for (const [child, object] of [
    ['pod', pod],
    ['service', service],
  ] as const) {
    if (!object || !isControlledBy(object, sandbox) || object.metadata.deletionTimestamp) continue
    const action = { kind: 'delete', child, name: object.metadata.name, missingIsFine: true } as const
    const step = { ...children, actions: [{ ...action, failure: `failed to delete ${child}` }] }
    errors.push(...(await performStep(step, sandbox, ports, signal)).errors)
  }
  if (sandbox.spec.shutdownPolicy === 'Delete') {
    try {
      await client.delete(Sandboxes, { name: sandbox.metadata.name, namespace }, { signal })
      return {}
    } catch (error) {
      if (isNotFound(error)) return {}
      errors.push(error)
    }
  } else if (errors.length === 0) {
    errors.push(...(await writeStatus(pass, expiredStatus(sandbox.status ?? {}, generation, clock.now()), ports)))
  }
  if (errors.length > 0) throw combineErrors(errors)
  return {}
}

/** Writes what changed and nothing else. We are the only writer of this status, so the patch needs no lock. */
async function writeStatus(pass: Pass, status: SandboxStatus, ports: SandboxPorts): Promise<unknown[]> {
  const before = pass.sandbox.status ?? {}
  const diff = mergeDiff(before, status)
  if (!diff || isNodeNameOnly(before, status, diff)) return []
  const { name, namespace = '' } = pass.sandbox.metadata
  const patch = { type: 'merge', body: { status: diff } } as const
  try {
    const options = { subresource: 'status', signal: pass.signal }
    ports.state.sandboxes.remember(await ports.client.patch(Sandboxes, { name, namespace }, patch, options))
    reportTransitions(pass.sandbox, status, ports)
    return []
  } catch (error) {
    return isNotFound(error) ? [] : [error]
  }
}

async function stampTrace(
  sandbox: Stored<Sandbox>,
  span: Span,
  { client, state }: SandboxPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  if (!span.traceContext || sandbox.metadata.annotations?.[annotations.traceContext]) return sandbox
  const body = { metadata: { annotations: { [annotations.traceContext]: span.traceContext } } }
  const { name, namespace = '' } = sandbox.metadata
  return state.sandboxes.remember(
    await client.patch(Sandboxes, { name, namespace }, { type: 'merge', body }, { signal }),
  )
}

function reportTransitions(sandbox: Stored<Sandbox>, status: SandboxStatus, ports: SandboxPorts): void {
  const { events, lifecycle, options } = ports
  if (!options.later?.sandboxEvents && !lifecycle) return
  for (const transition of sandboxTransitions(sandbox, status)) {
    lifecycle?.became(sandbox, transition)
    const note = options.later?.sandboxEvents ? transitionNote(transition, sandbox) : undefined
    if (note) events.record(sandbox, note)
  }
}

function reportPod(sandbox: Stored<Sandbox>, { creates, object, errors }: PodOutcome, ports: SandboxPorts): void {
  if (errors.length > 0) ports.lifecycle?.failed(sandbox)
  if (!creates || !ports.options.later?.sandboxEvents) return
  const said = object
    ? ({ type: 'Normal', reason: 'SandboxPodCreated', note: `Created Pod ${quote(object.metadata.name)}` } as const)
    : ({ type: 'Warning', reason: 'SandboxPodCreateFailed', note: errorText(combineErrors(errors)) } as const)
  ports.events.record(sandbox, { ...said, action: 'Reconciling' })
}

function reportMultiplePods(sandbox: Stored<Sandbox>, count: number, { events }: SandboxPorts): void {
  if (findCondition(sandbox.status?.conditions, 'Ready')?.reason === 'MultiplePods') return
  events.record(sandbox, {
    type: 'Warning',
    reason: 'MultiplePods',
    action: 'Reconciling',
    note: multiplePodsText(count),
  })
}

function spanAttributes(sandbox: Stored<Sandbox>): Record<string, string> {
  const creator = sandbox.metadata.labels?.[labels.createdBy]
  return {
    'sandbox.name': sandbox.metadata.name,
    'sandbox.namespace': sandbox.metadata.namespace ?? '',
    ...(creator !== undefined && { [labels.createdBy]: normalizeCreatedBy(creator) }),
  }
}

function soonest(delays: readonly (number | undefined)[]): ReconcileResult {
  const set = delays.filter((delay) => delay !== undefined)
  return set.length > 0 ? { requeueAfterMs: Math.min(...set) } : {}
}
