import {
  errorCode,
  isAlreadyExists,
  isConditionTrue,
  isConflict,
  isControlledBy,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  type SandboxWarmPool,
  type Stored,
} from '@corral/resources'
import { errorText, StepError } from '../error-text.js'
import { annotations, labels } from '../names.js'
import { quote } from '../ownership.js'
import { poolOf } from './adoptable.js'
import { assign, patchClaim, transfer } from './adoption.js'
import { boundPatch } from './adoption-patch.js'
import { selectCandidate } from './candidate.js'
import { ClaimProblem } from './claim-problem.js'
import { coldSandbox } from './cold-start.js'
import { launchLabels } from './first-ready.js'
import { type ClaimPlan, collisionText, planClaim, type Reference, warmRetryAfterMs } from './plan.js'
import { checkAdditionalMetadata } from './pod-metadata.js'
import type { ClaimPorts } from './ports.js'

/** A claim being served. Writes replace `claim` by what the server stored; `stamps` wait for a write to ride along with. */
export interface ClaimDraft {
  claim: Stored<SandboxClaim>
  stamps: Record<string, string>
}

export type Provision = { kind: 'sandbox'; sandbox: Stored<Sandbox> } | { kind: 'wait'; retryAfterMs: number }

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
      const { adopted, pending } = await adoptWarm(draft, ports, signal)
      if (adopted) return { kind: 'sandbox', sandbox: adopted }
      const retryAfterMs = pending > 0 ? warmRetryAfterMs(draft.claim, clock.now()) : undefined
      if (retryAfterMs !== undefined) return { kind: 'wait', retryAfterMs }
      return startCold(draft, ports, signal)
    }
    case 'cold':
      return startCold(draft, ports, signal)
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

async function adoptWarm(
  draft: ClaimDraft,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<{ adopted?: Stored<Sandbox>; pending: number }> {
  const { claim } = draft
  const { state, queue } = ports
  const namespace = claim.metadata.namespace ?? ''
  const pool = `${namespace}/${claim.spec.warmPoolRef.name}`
  const { chosen, pending } = selectCandidate({
    claim,
    queue,
    findSandbox: (key) => state.sandboxes.get(key),
    findPool: () => state.pools.get(pool),
    findTemplate: (name) => state.templates.get(`${namespace}/${name}`),
  })
  if (!chosen) return { pending }
  const poolName = poolOf(chosen.sandbox) ?? ''
  const adoption = { claim, ports, signal, findTemplate: () => findTemplate(claim, ports) }
  try {
    draft.claim = await assign(adoption, chosen.sandbox.metadata.name, draft.stamps)
    draft.stamps = {}
  } catch (error) {
    queue.add(pool, chosen.item)
    throw error
  }
  let adopted: Stored<Sandbox>
  try {
    adopted = await transfer({ ...adoption, claim: draft.claim }, chosen.sandbox)
  } catch (error) {
    // A lost Sandbox must not be offered again; after any other failure it is still the pool's.
    if (errorCode(error) !== 'AdoptionConflict') queue.add(pool, chosen.item)
    throw error
  }
  const note = `Adopted warm pool Sandbox ${quote(adopted.metadata.name)}`
  ports.events.record(draft.claim, { type: 'Normal', reason: 'SandboxAdopted', action: 'Adoption', note })
  ports.metrics.created({
    namespace,
    launchType: 'warm',
    template: launchLabels(adopted).template,
    pool: poolName,
    isReady: isConditionTrue(adopted.status?.conditions, 'Ready'),
    createdBy: claim.metadata.labels?.[labels.createdBy],
  })
  return { adopted, pending: 0 }
}

async function completeTransfer(
  draft: ClaimDraft,
  sandbox: Stored<Sandbox>,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  const { claim } = draft
  try {
    return await transfer({ claim, ports, signal, findTemplate: () => findTemplate(claim, ports) }, sandbox)
  } catch (error) {
    if (error instanceof ClaimProblem || signal.aborted) throw error
    throw new StepError(`failed to complete adoption of ${quote(sandbox.metadata.name)}`, error)
  }
}

async function startCold(draft: ClaimDraft, ports: ClaimPorts, signal: AbortSignal): Promise<Provision | 'outdated'> {
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

/** Brings a bound Sandbox's pod metadata up to what template and claim say now. */
async function keepMetadata(
  claim: Stored<SandboxClaim>,
  sandbox: Stored<Sandbox>,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  let template: Stored<SandboxTemplate>
  try {
    template = getTemplate(claim, ports)
  } catch (problem) {
    const { labels: wantedLabels, annotations: wantedAnnotations } = claim.spec.additionalPodMetadata ?? {}
    const wantsMetadata = Object.keys({ ...wantedLabels, ...wantedAnnotations }).length > 0
    // A bound sandbox runs on without its template unless the claim wants something merged with it.
    if (!wantsMetadata || !(problem instanceof ClaimProblem)) return sandbox
    const text = `failed to get template for metadata propagation: ${problem.message}`
    throw new ClaimProblem(problem.kind, text, { cause: problem, shown: shownMissing(problem, text) })
  }
  const body = boundPatch(claim, sandbox, template)
  if (!body) return sandbox
  const ref = { name: sandbox.metadata.name, namespace: sandbox.metadata.namespace ?? '' }
  try {
    return ports.state.sandboxes.remember(await ports.client.patch(Sandboxes, ref, { type: 'merge', body }, { signal }))
  } catch (error) {
    const text = `failed to patch sandbox metadata for claim ${quote(claim.metadata.name)}: ${errorText(error)}`
    throw new ClaimProblem('ReconcilerError', text, { cause: error, sandbox })
  }
}

function shownMissing(problem: ClaimProblem, text: string): string {
  return problem.kind === 'TemplateNotFound' ? text.replace(/: SandboxTemplate not found$/, '') : problem.shown
}

async function backfillLaunchType(
  sandbox: Stored<Sandbox>,
  launchType: 'warm' | 'cold',
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  if (sandbox.metadata.labels?.[labels.launchType] !== undefined) return sandbox
  const ref = { name: sandbox.metadata.name, namespace: sandbox.metadata.namespace ?? '' }
  const body = { metadata: { labels: { [labels.launchType]: launchType } } }
  try {
    return ports.state.sandboxes.remember(await ports.client.patch(Sandboxes, ref, { type: 'merge', body }, { signal }))
  } catch (error) {
    throw new StepError(`failed to initialize launch type label on sandbox ${quote(ref.name)}`, error)
  }
}

/**
 * Removes an assignment that leads nowhere, locked to the version it was read in: another manager may have made a new one
 * since, and a claim that lost it would get a second sandbox. A conflict fails the pass; the next one reads afresh.
 */
async function dropReference(
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
async function migrate(draft: ClaimDraft, reference: Reference, ports: ClaimPorts, signal: AbortSignal): Promise<void> {
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

function getTemplate(claim: Stored<SandboxClaim>, ports: ClaimPorts): Stored<SandboxTemplate> {
  const pool = findPool(claim, ports)
  const poolName = claim.spec.warmPoolRef.name
  if (!pool) {
    const shown = `SandboxWarmPool ${quote(poolName)} not found`
    throw new ClaimProblem('WarmPoolNotFound', `${shown}: SandboxWarmPool not found`, { shown })
  }
  const templateName = pool.spec.sandboxTemplateRef.name
  const template = ports.state.templates.get(`${claim.metadata.namespace ?? ''}/${templateName}`)
  if (template) return template
  const shown = `SandboxTemplate ${quote(templateName)} not found`
  throw new ClaimProblem('TemplateNotFound', `${shown}: SandboxTemplate not found`, { shown })
}

function findPool(claim: Stored<SandboxClaim>, { state }: ClaimPorts): Stored<SandboxWarmPool> | undefined {
  return state.pools.get(`${claim.metadata.namespace ?? ''}/${claim.spec.warmPoolRef.name}`)
}

function findTemplate(claim: Stored<SandboxClaim>, ports: ClaimPorts): Stored<SandboxTemplate> | undefined {
  const pool = findPool(claim, ports)
  return pool && ports.state.templates.get(`${claim.metadata.namespace ?? ''}/${pool.spec.sandboxTemplateRef.name}`)
}
