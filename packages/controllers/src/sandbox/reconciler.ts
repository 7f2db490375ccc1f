import { isConditionTrue, nameHash, type Sandbox, Sandboxes, type Stored } from '@corral/resources'
import type { Reconcile, ReconcileResult } from '@corral/runtime'
import { combineErrors, isNamespaceTerminating } from '../shared/error-text.js'
import { annotations, labels, normalizeCreatedBy } from '../shared/names.js'
import { type PoolLevels, poolKeyOf } from '../shared/pool-levels.js'
import type { Span } from '../shared/tracing.js'
import { Deferrals } from './deferrals.js'
import { expireSandbox } from './expire-sandbox.js'
import { markExpired, sandboxExpiry } from './expiry.js'
import { explainPod } from './explain.js'
import { nextLook } from './next-look.js'
import { performStep } from './perform.js'
import { reconcilePod } from './pod-step.js'
import type { SandboxPorts } from './ports.js'
import { planPvcs } from './pvc-plan.js'
import { type ReconcileContext, writeStatus } from './reconcile-context.js'
import { reportMultiplePods, reportPod } from './reports.js'
import { planService } from './service-plan.js'
import { isRefusedForGood, sandboxStatus } from './status.js'

/** A namespace that is going away refuses every create for as long as it takes. */
const namespaceTerminatingRequeueMs = 30_000

/** Keeps a Sandbox's Pod, Service and volumes as its spec says and its status true. */
export function sandboxReconciler(ports: SandboxPorts): Reconcile {
  const deferrals = new Deferrals(ports.options.writeBehindWindowMs)

  return async ({ key, signal }) => {
    const sandbox = ports.state.sandboxes.get(key)
    if (!sandbox || sandbox.metadata.deletionTimestamp) {
      deferrals.end(key)
      return {}
    }
    return ports.tracer.span('ReconcileSandbox', sandbox, spanAttributes(sandbox), async (span) => {
      const traced = await stampTrace(sandbox, span, ports, signal)
      const context: ReconcileContext = { key, sandbox: traced, hash: nameHash(traced.metadata.name), span, signal }
      try {
        const expired = sandboxExpiry(traced, ports.clock.now()).expired
        return expired ? await expireSandbox(context, ports) : await lookAfterChildren(context, ports, deferrals)
      } catch (error) {
        if (isNamespaceTerminating(error)) return { requeueAfterMs: namespaceTerminatingRequeueMs }
        throw error
      }
    })
  }
}

/**
 * Whether a user may be waiting for the Sandbox: not for a pool's spare ones unless they are nearly used up, and no more
 * once it is Ready.
 */
export function isAwaited(sandbox: Stored<Sandbox>, levels: PoolLevels): boolean {
  if (sandbox.spec.operatingMode === 'Suspended') return true
  if (isConditionTrue(sandbox.status?.conditions, 'Ready')) return false
  const pool = poolKeyOf(sandbox)
  return pool === undefined || levels.isLow(pool)
}

async function lookAfterChildren(
  context: ReconcileContext,
  ports: SandboxPorts,
  deferrals: Deferrals,
): Promise<ReconcileResult> {
  const { key, sandbox, hash, span, signal } = context
  const { state, clock, options } = ports
  const namespace = sandbox.metadata.namespace ?? ''
  const findPvc = (name: string): ReturnType<typeof state.pvcs.get> => state.pvcs.get(`${namespace}/${name}`)

  const pvcs = await span.child('reconcilePVCs', () =>
    performStep(planPvcs({ sandbox, nameHash: hash, findPvc }), sandbox, ports, signal),
  )
  const pod = await span.child('reconcilePod', (podSpan) =>
    reconcilePod({ ...context, span: podSpan }, ports, deferrals),
  )
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
    upstreamRelease: options.upstreamRelease,
  })
  const expiry = sandboxExpiry(sandbox, now)
  if (expiry.expired) status = markExpired(status, sandbox.metadata.generation ?? 0, now)

  const errors = [...pvcs.errors, ...pod.errors, ...service.errors]
  const next = nextLook({ expiry, deferredMs: pod.deferredMs, hasErrors: errors.length > 0 })
  if (next.deferral === 'begin') deferrals.begin(key, now)
  if (next.deferral === 'end') deferrals.end(key)
  reportPod(sandbox, pod, ports)
  const isFinal = options.upstreamRelease?.invalidConfiguration === true && isRefusedForGood(errors)
  const unwritten = await writeStatus(context, status, ports)
  if (errors.length > 0 && !isFinal) throw combineErrors([...errors, ...unwritten])
  if (unwritten.length > 0) throw combineErrors(unwritten)
  return next.result
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

function spanAttributes(sandbox: Stored<Sandbox>): Record<string, string> {
  const creator = sandbox.metadata.labels?.[labels.createdBy]
  return {
    'sandbox.name': sandbox.metadata.name,
    'sandbox.namespace': sandbox.metadata.namespace ?? '',
    ...(creator !== undefined && { [labels.createdBy]: normalizeCreatedBy(creator) }),
  }
}
