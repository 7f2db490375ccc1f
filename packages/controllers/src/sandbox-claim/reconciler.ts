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
import { patchClaim } from './adoption.js'
import { type ClaimDraft, flushStamps, withStamps } from './claim-draft.js'
import { type ClaimProblem, toProblem } from './claim-problem.js'
import { deleteClaim, deleteSandbox } from './end-claim.js'
import { claimExpiry, expiryMove, isMarkedExpired } from './expiry.js'
import { countFirstReady, firstReady, firstReadyStamp } from './first-ready.js'
import { immediatelyMs, nextLook } from './next-look.js'
import type { ClaimPorts } from './ports.js'
import { provision } from './provision.js'
import { claimStatus, markClaimExpired } from './status.js'

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
      const { traceContext } = span
      const draft = (): ClaimDraft => withStamps(claim, { observedAt: () => ports.observed.of(claim), traceContext })
      const serve = (): Promise<ReconcileResult> => reconcileClaim(draft(), ports, request)
      return isConditionTrue(claim.status?.conditions, 'Ready') ? serve() : ports.priorities.high(serve)
    })
  }
}

async function reconcileClaim(
  draft: ClaimDraft,
  ports: ClaimPorts,
  request: ReconcileRequest,
): Promise<ReconcileResult> {
  const { clock } = ports
  const { signal } = request
  const seen = draft.claim.status ?? {}
  const next = expiryMove(draft.claim, clock.now())
  if (next.move === 'mark') {
    await flushStamps(draft, ports, signal)
    return recordExpiry(draft, seen, markClaimExpired(draft.claim, seen, clock.now()), ports, signal)
  }
  if (next.move === 'deleteClaim') return deleteClaim(draft.claim, next.policy, ports, signal)
  const isExpired = next.move === 'deleteSandbox'

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
  const isWritten = await writeStatus(draft, before, status, ports, signal)
  const deferredWrite = isWritten ? stampFirstReady(draft, before, status, sandbox, ports, signal) : undefined
  const { kind, ...look } = nextLook({ problem, isExpired, expiry, isWritten })
  if (kind === 'rest') return { ...look, ...(deferredWrite && { deferredWrite }) }
  const errors: unknown[] = [problem]
  await deferredWrite?.().catch((error: unknown) => errors.push(error))
  throw combineErrors(errors)
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
function stampFirstReady(
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
  const body = { metadata: { annotations: { [annotations.firstReadyAt]: firstReadyStamp(kind, now) } } }
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
