import {
  controllerOf,
  isConditionTrue,
  isConflict,
  isNotFound,
  NetworkPolicies,
  type Sandbox,
  type SandboxClaim,
  type SandboxClaimStatus,
  SandboxClaims,
  type Stored,
} from '@corral/resources'
import type { Reconcile, ReconcileRequest, ReconcileResult } from '@corral/runtime'
import { combineErrors, StepError } from '../shared/error-text.js'
import { mergeDiff } from '../shared/merge-diff.js'
import { annotations, labels, normalizeCreatedBy } from '../shared/names.js'
import { isExtensionsOwner } from '../shared/ownership.js'
import type { Span } from '../shared/tracing.js'
import { patchClaim } from './adoption.js'
import { type ClaimDraft, flushStamps } from './claim-draft.js'
import { type ClaimProblem, isSuppressed, quietRetryMs, toProblem } from './claim-problem.js'
import { deleteClaim, deleteSandbox } from './end-claim.js'
import { claimExpiry, isMarkedExpired } from './expiry.js'
import { countFirstReady, firstReady } from './first-ready.js'
import type { ClaimPorts } from './ports.js'
import { provision } from './provision.js'
import { claimStatus, markClaimExpired } from './status.js'

const immediatelyMs = 1
/** The event of the conflicting write usually comes first; this is for the case that it came already. */
const lostWriteRetryMs = 500

/** Gets every claim its sandbox, warm or cold, mirrors the sandbox's state and ends the claim when its time is up. */
export function claimReconciler(ports: ClaimPorts): Reconcile {
  return async (request) => {
    const claim = ports.state.claims.get(request.key)
    if (!claim) {
      ports.observed.dropKey(request.key)
      return {}
    }
    await removeLegacyPolicy(claim, ports, request)
    const creator = claim.metadata.labels?.[labels.createdBy]
    const attributes: Record<string, string> = creator ? { [labels.createdBy]: normalizeCreatedBy(creator) } : {}
    return ports.tracer.span('ReconcileSandboxClaim', claim, attributes, async (span) => {
      if (claim.metadata.deletionTimestamp) return {}
      const serve = (): Promise<ReconcileResult> => reconcileClaim(draftOf(claim, span, ports), ports, request)
      return isConditionTrue(claim.status?.conditions, 'Ready') ? serve() : ports.priorities.high(serve)
    })
  }
}

/** Notes to be left on a claim that has none yet; every later step sees them as if they were stored. */
function draftOf(claim: Stored<SandboxClaim>, span: Span, ports: ClaimPorts): ClaimDraft {
  const known = claim.metadata.annotations ?? {}
  const stamps: Record<string, string> = {}
  if (!known[annotations.firstObservedAt]) stamps[annotations.firstObservedAt] = ports.observed.of(claim).toISOString()
  if (span.traceContext && !known[annotations.traceContext]) stamps[annotations.traceContext] = span.traceContext
  if (Object.keys(stamps).length === 0) return { claim, stamps }
  return { claim: { ...claim, metadata: { ...claim.metadata, annotations: { ...known, ...stamps } } }, stamps }
}

async function reconcileClaim(
  draft: ClaimDraft,
  ports: ClaimPorts,
  request: ReconcileRequest,
): Promise<ReconcileResult> {
  const { clock } = ports
  const { signal } = request
  const seen = draft.claim.status ?? {}
  const isExpired = claimExpiry(draft.claim, seen.conditions, clock.now()).expired
  if (isExpired && !isMarkedExpired(seen.conditions)) {
    await flushStamps(draft, ports, signal)
    return recordExpiry(draft, seen, markClaimExpired(draft.claim, seen, clock.now()), ports, signal)
  }
  const policy = draft.claim.spec.lifecycle?.shutdownPolicy
  if (isExpired && (policy === 'Delete' || policy === 'DeleteForeground')) {
    return deleteClaim(draft.claim, policy, ports, signal)
  }

  let sandbox: Stored<Sandbox> | undefined
  let problem: ClaimProblem | undefined
  try {
    if (isExpired) sandbox = await deleteSandbox(draft.claim, ports, signal)
    else {
      const outcome = await provision(draft, ports, signal)
      if (outcome.kind === 'wait') {
        await flushStamps(draft, ports, signal)
        return { requeueAfterMs: outcome.retryAfterMs }
      }
      sandbox = outcome.sandbox
    }
  } catch (error) {
    signal.throwIfAborted()
    problem = toProblem(error)
    sandbox = problem.options.sandbox
  }
  await flushStamps(draft, ports, signal)

  const before = draft.claim.status ?? {} // every write on the way brought back what the server has
  const now = clock.now()
  let status = claimStatus({ claim: draft.claim, sandbox, problem, isExpired, now })
  const expiry = claimExpiry(draft.claim, status.conditions, now)
  if (expiry.expired && !isMarkedExpired(status.conditions)) {
    status = markClaimExpired(draft.claim, status, now)
    return recordExpiry(draft, before, status, ports, signal)
  }
  const isAuthoritative = await writeStatus(draft, before, status, ports, signal)
  const deferredWrite = isAuthoritative ? firstReadyStamp(draft, before, status, sandbox, ports, signal) : undefined
  const leftMs = isExpired ? undefined : expiry.expired ? immediatelyMs : expiry.leftMs
  return resultOf(
    problem,
    deferredWrite,
    isAuthoritative ? leftMs : Math.min(lostWriteRetryMs, leftMs ?? lostWriteRetryMs),
  )
}

async function resultOf(
  problem: ClaimProblem | undefined,
  deferredWrite: (() => Promise<void>) | undefined,
  leftMs: number | undefined,
): Promise<ReconcileResult> {
  const quietMs = problem && quietRetryMs(problem)
  const rest = deferredWrite && { deferredWrite }
  if (quietMs !== undefined) return { requeueAfterMs: Math.min(quietMs, leftMs ?? quietMs), ...rest }
  if (problem && !isSuppressed(problem)) {
    const errors: unknown[] = [problem]
    await deferredWrite?.().catch((error: unknown) => errors.push(error))
    throw combineErrors(errors)
  }
  return leftMs === undefined ? { ...rest } : { requeueAfterMs: leftMs, ...rest }
}

async function recordExpiry(
  draft: ClaimDraft,
  before: SandboxClaimStatus,
  status: SandboxClaimStatus,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  await writeStatus(draft, before, status, ports, signal)
  ports.events.record(draft.claim, {
    type: 'Normal',
    reason: 'ClaimExpired',
    action: 'Claim Expired',
    note: 'Claim expired',
  })
  return { requeueAfterMs: immediatelyMs }
}

/**
 * Writes what changed, locked to the version the pass read. A conflict is dropped: the conflicting write caused an
 * event that brings the claim back. False says that the server may hold something else, which deserves a later look.
 */
async function writeStatus(
  draft: ClaimDraft,
  before: SandboxClaimStatus,
  status: SandboxClaimStatus,
  { client, state }: ClaimPorts,
  signal: AbortSignal,
): Promise<boolean> {
  const diff = mergeDiff(before, status)
  if (!diff) return true
  const { name, namespace = '', resourceVersion } = draft.claim.metadata
  const body = { metadata: { resourceVersion }, status: diff }
  try {
    const options = { subresource: 'status', signal }
    draft.claim = state.claims.remember(
      await client.patch(SandboxClaims, { name, namespace }, { type: 'merge', body }, options),
    )
    return true
  } catch (error) {
    if (isNotFound(error)) return true
    if (isConflict(error)) return false
    throw error
  }
}

/** Counts a first Ready; the write that keeps it from being counted again is deferred. */
function firstReadyStamp(
  draft: ClaimDraft,
  before: SandboxClaimStatus,
  after: SandboxClaimStatus,
  sandbox: Stored<Sandbox> | undefined,
  ports: ClaimPorts,
  signal: AbortSignal,
): (() => Promise<void>) | undefined {
  const { kind } = firstReady(draft.claim, before, after)
  if (kind === 'none') return undefined
  const now = ports.clock.now()
  if (kind === 'count') countFirstReady(draft.claim, sandbox, ports.observed.of(draft.claim), ports.metrics, now)
  ports.observed.drop(draft.claim)
  const stamp = kind === 'count' ? now.toISOString() : 'unknown'
  const body = { metadata: { annotations: { [annotations.firstReadyAt]: stamp } } }
  return async () => {
    try {
      await patchClaim(draft.claim, body, ports, signal)
    } catch (error) {
      throw new StepError(`${kind === 'count' ? 'stamp' : 'backfill'} claim first-ready annotation`, error)
    }
  }
}

/** Policies of single claims come from releases before templates had one; whatever is left of them goes. */
async function removeLegacyPolicy(
  claim: Stored<SandboxClaim>,
  { client, state }: ClaimPorts,
  { key, log, signal }: ReconcileRequest,
): Promise<void> {
  const policy = state.networkPolicies.get(`${key}-network-policy`)
  const controller = policy && controllerOf(policy)
  if (!policy || !isExtensionsOwner(controller, 'SandboxClaim') || controller?.uid !== claim.metadata.uid) return
  try {
    const ref = { name: policy.metadata.name, namespace: policy.metadata.namespace ?? '' }
    await client.delete(NetworkPolicies, ref, { signal })
  } catch (error) {
    if (!isNotFound(error)) log.warn('legacy network policy not removed', { error })
  }
}
