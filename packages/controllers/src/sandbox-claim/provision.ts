import { isConflict, isNotFound, type Sandbox, type SandboxClaim, Sandboxes, type Stored } from '@corral/resources'
import { quote } from '../shared/ownership.js'
import { backfillLaunchType, keepMetadata } from './bound-sandbox.js'
import { type ClaimDraft, dropReference, migrate, type Provision } from './claim-draft.js'
import { startCold } from './cold-provision.js'
import { type ClaimPlan, planClaim, warmRetryAfterMs } from './plan.js'
import { checkAdditionalMetadata } from './pod-metadata.js'
import type { ClaimPorts } from './ports.js'
import { adoptWarm, completeTransfer } from './warm-provision.js'

/** Finds, adopts or creates the claim's sandbox. Throws a `ClaimProblem` or whatever the server answered. */
export async function provision(draft: ClaimDraft, ports: ClaimPorts, signal: AbortSignal): Promise<Provision> {
  checkAdditionalMetadata(draft.claim.spec.additionalPodMetadata, ports.options.labelDomains)
  for (let tries = 3; tries > 0; tries -= 1) {
    const outcome = await provisionOnce(draft, ports, signal)
    if (outcome !== 'outdated') return outcome
  }
  throw new Error(`claim ${quote(draft.claim.metadata.name)} keeps changing while its sandbox is sought`)
}

/** `outdated` says that the claim had changed since it was read; the draft now holds what the server has. */
async function provisionOnce(
  draft: ClaimDraft,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Provision | 'outdated'> {
  const { clock } = ports
  const plan = await confirmedPlan(draft.claim, ports, signal)
  if (plan.dropReference) await dropReference(draft, plan.dropReference, ports, signal)
  if (plan.surplus) await removeSurplus(plan.surplus, ports, signal)

  const { next } = plan
  switch (next.kind) {
    case 'use': {
      if (next.migrate) await migrate(draft, next.migrate, ports, signal)
      const sandbox = await backfillLaunchType(next.sandbox, next.launchType, ports, signal)
      return { kind: 'sandbox', sandbox: await keepMetadata(draft.claim, sandbox, ports, signal) }
    }
    case 'transfer': {
      const sandbox = await completeTransfer(draft, next.sandbox, ports, signal)
      if (next.migrate) await migrate(draft, next.migrate, ports, signal)
      return { kind: 'sandbox', sandbox }
    }
    case 'collision':
      throw new Error(next.message)
    case 'warmOrCold': {
      const { adopted, arePending } = await adoptWarm(draft, ports, signal)
      if (adopted) return { kind: 'sandbox', sandbox: adopted }
      const retryAfterMs = arePending ? warmRetryAfterMs(draft.claim, clock.now()) : undefined
      if (retryAfterMs !== undefined) return { kind: 'wait', retryAfterMs }
      return startCold(draft, ports, signal)
    }
    case 'cold':
      return startCold(draft, ports, signal)
  }
}

async function removeSurplus(sandbox: Stored<Sandbox>, { client }: ClaimPorts, signal: AbortSignal): Promise<void> {
  const { name, namespace = '', uid } = sandbox.metadata
  try {
    await client.delete(Sandboxes, { name, namespace }, { preconditions: { uid }, signal })
  } catch (error) {
    // Gone, or another of the same name: either way no longer the one that was too many.
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
}

/**
 * The plan for the claim. A view that is behind the writes of another manager may not know the claim's sandbox yet, so
 * what is recorded is given up only when the server does not know it either: otherwise the claim would get a second one.
 */
async function confirmedPlan(
  claim: Stored<SandboxClaim>,
  { client, state }: ClaimPorts,
  signal: AbortSignal,
): Promise<ClaimPlan> {
  const { namespace = '' } = claim.metadata
  const findSandbox = (name: string): Stored<Sandbox> | undefined => state.sandboxes.get(`${namespace}/${name}`)
  const plan = planClaim({ claim, findSandbox })
  const bound = claim.status?.sandbox?.name
  const doubtful = plan.dropReference?.reference.name ?? (bound && !findSandbox(bound) ? bound : undefined)
  if (doubtful === undefined) return plan
  let live: Stored<Sandbox> | undefined
  try {
    live = await client.find(Sandboxes, { name: doubtful, namespace }, { signal })
  } catch (error) {
    // A sandbox of the claim's own name cannot be made twice: its creation is refused and asks again.
    if (doubtful === claim.metadata.name && !plan.dropReference) return plan
    throw error
  }
  return planClaim({ claim, findSandbox: (name) => (name === doubtful ? live : findSandbox(name)) })
}
