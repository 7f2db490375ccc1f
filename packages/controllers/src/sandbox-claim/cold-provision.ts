import {
  isAlreadyExists,
  isConflict,
  isControlledBy,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type Stored,
} from '@corral/resources'
import { errorText, StepError } from '../shared/error-text.js'
import { labels } from '../shared/names.js'
import { quote } from '../shared/ownership.js'
import { patchClaim } from './adoption.js'
import type { ClaimDraft, Provision } from './claim-draft.js'
import { ClaimProblem } from './claim-problem.js'
import { coldSandbox } from './cold-start.js'
import { collisionText } from './plan.js'
import { getTemplate } from './pool-template.js'
import type { ClaimPorts } from './ports.js'

/** A Sandbox of the claim's own name, once the server has confirmed the claim. */
export async function startCold(
  draft: ClaimDraft,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Provision | 'outdated'> {
  // A create cannot be locked to the claim's version. Only a claim known to be current may get a sandbox of its own:
  // on an old view it may have one already.
  if (!(await isCurrent(draft, ports, signal))) return 'outdated'
  return { kind: 'sandbox', sandbox: await createCold(draft.claim, ports, signal) }
}

/** Confirms the draft with the server, by the stamps' own write where there is one. */
async function isCurrent(draft: ClaimDraft, ports: ClaimPorts, signal: AbortSignal): Promise<boolean> {
  const { name, namespace = '', resourceVersion } = draft.claim.metadata
  if (Object.keys(draft.stamps).length > 0 && !ports.options.disableObservabilityAnnotations) {
    try {
      const body = { metadata: { resourceVersion, annotations: draft.stamps } }
      draft.claim = await patchClaim(draft.claim, body, ports, signal)
      draft.stamps = {}
      return true
    } catch (error) {
      if (!isConflict(error)) throw error
    }
  }
  const fresh = await ports.client.get(SandboxClaims, { name, namespace }, { signal })
  if (fresh.metadata.resourceVersion === resourceVersion) return true
  draft.claim = fresh
  const known = fresh.metadata.annotations ?? {}
  draft.stamps = Object.fromEntries(Object.entries(draft.stamps).filter(([key]) => !known[key]))
  return false
}

async function createCold(
  claim: Stored<SandboxClaim>,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  const template = getTemplate(claim, ports)
  const desired = coldSandbox(claim, template)
  const ref = { name: claim.metadata.name, namespace: claim.metadata.namespace ?? '' }
  let created: Stored<Sandbox>
  try {
    created = ports.state.sandboxes.remember(await ports.client.create(Sandboxes, desired, { signal }))
  } catch (error) {
    if (!isAlreadyExists(error)) throw new StepError('sandbox create error', error)
    return existing(claim, ref, error, ports, signal)
  }
  const note = `Created Sandbox ${quote(created.metadata.name)}`
  ports.events.record(claim, { type: 'Normal', reason: 'SandboxProvisioned', action: 'Provisioning', note })
  ports.metrics.created({
    namespace: ref.namespace,
    launchType: 'cold',
    template: template.metadata.name,
    pool: claim.spec.warmPoolRef.name,
    isReady: false,
    createdBy: claim.metadata.labels?.[labels.createdBy],
  })
  return created
}

/** The create lost against an object our view does not show yet; the server knows whose it is. */
async function existing(
  claim: Stored<SandboxClaim>,
  ref: { name: string; namespace: string },
  cause: unknown,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  let live: Stored<Sandbox>
  try {
    live = await ports.client.get(Sandboxes, ref, { signal })
  } catch (failure) {
    const text = `sandbox already exists (cache lag): ${errorText(cause)} (authoritative read failed: ${errorText(failure)})`
    throw new ClaimProblem('SandboxCreatePending', text, { cause: failure })
  }
  if (!isControlledBy(live, claim)) throw new Error(collisionText(live.metadata.name, claim.metadata.name))
  return live
}
