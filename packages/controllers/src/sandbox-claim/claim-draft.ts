import type { Sandbox, SandboxClaim, Stored } from '@corral/resources'
import { StepError } from '../shared/error-text.js'
import { annotations, labels } from '../shared/names.js'
import { patchClaim } from './adoption.js'
import type { Reference } from './plan.js'
import type { ClaimPorts } from './ports.js'

/** A claim being served. Writes replace `claim` by what the server stored; `stamps` wait for a write to ride along with. */
export interface ClaimDraft {
  claim: Stored<SandboxClaim>
  stamps: Record<string, string>
}

/**
 * The claim with the stamps it lacks, as if they were stored: when a controller first saw it, and the trace it belongs to.
 * A stamp that is there stays, so that a restart counts from the first look.
 */
export function withStamps(
  claim: Stored<SandboxClaim>,
  { observedAt, traceContext }: { observedAt: () => Date; traceContext: string | undefined },
): ClaimDraft {
  const known = claim.metadata.annotations ?? {}
  const stamps: Record<string, string> = {}
  if (!known[annotations.firstObservedAt]) stamps[annotations.firstObservedAt] = observedAt().toISOString()
  if (traceContext && !known[annotations.traceContext]) stamps[annotations.traceContext] = traceContext
  if (Object.keys(stamps).length === 0) return { claim, stamps }
  return { claim: { ...claim, metadata: { ...claim.metadata, annotations: { ...known, ...stamps } } }, stamps }
}

/** What a claim gets: a Sandbox, or a later look. */
export type Provision = { kind: 'sandbox'; sandbox: Stored<Sandbox> } | { kind: 'wait'; retryAfterMs: number }

/**
 * Removes an assignment that leads nowhere, locked to the version it was read in: another manager may have made a new one
 * since, and a claim that lost it would get a second sandbox. A conflict fails the pass; the next one reads afresh.
 */
export async function dropReference(
  draft: ClaimDraft,
  { reference, failure }: { reference: Reference; failure: string },
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<void> {
  const { resourceVersion } = draft.claim.metadata
  const metadata =
    reference.carrier === 'label'
      ? { resourceVersion, labels: { [labels.assignedSandbox]: null } }
      : { resourceVersion, annotations: { [annotations.assignedSandbox]: null } }
  try {
    draft.claim = await patchClaim(draft.claim, { metadata }, ports, signal)
  } catch (error) {
    throw new StepError(failure, error)
  }
}

/** Moves an assignment from the old label to the annotation. Both are read, so a failure may wait for the next pass. */
export async function migrate(
  draft: ClaimDraft,
  reference: Reference,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<void> {
  const metadata = {
    annotations: { [annotations.assignedSandbox]: reference.name },
    labels: { [labels.assignedSandbox]: null },
  }
  try {
    draft.claim = await patchClaim(draft.claim, { metadata }, ports, signal)
  } catch {
    signal.throwIfAborted()
  }
}

/** Writes the waiting stamps on their own, where no other write of the claim takes them along. */
export async function flushStamps(draft: ClaimDraft, ports: ClaimPorts, signal: AbortSignal): Promise<void> {
  const stamps = draft.stamps
  draft.stamps = {}
  if (Object.keys(stamps).length === 0 || ports.options.disableObservabilityAnnotations) return
  draft.claim = await patchClaim(draft.claim, { metadata: { annotations: stamps } }, ports, signal)
}
