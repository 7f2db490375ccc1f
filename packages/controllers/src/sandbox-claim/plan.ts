import { controllerOf, isControlledBy, type Sandbox, type SandboxClaim, type Stored } from '@corral/resources'
import { annotations, labels } from '../shared/names.js'
import { isExtensionsOwner, poolOf, quote } from '../shared/ownership.js'
import { whyNotCandidate } from './adoptable.js'

/** Where a claim's assignment is written: the annotation, or the label that older controllers used. */
export type Reference = { name: string; carrier: 'annotation' | 'label' }

/** What to do about the claim's sandbox. */
export type Resolution =
  /** It is the claim's already. `launchType` is put on it if it has none. */
  | { kind: 'use'; sandbox: Stored<Sandbox>; launchType: 'warm' | 'cold'; migrate?: Reference }
  /** Assigned, but still the pool's: the transfer was interrupted. */
  | { kind: 'transfer'; sandbox: Stored<Sandbox>; migrate?: Reference }
  /** A Sandbox with another owner has the claim's name. */
  | { kind: 'collision'; message: string }
  /** Its wishes cannot be met by a warm sandbox. */
  | { kind: 'cold' }
  | { kind: 'warmOrCold' }

export interface ClaimPlan {
  /** The recorded assignment leads nowhere and is removed first. */
  dropReference?: { reference: Reference; failure: string }
  /** A Sandbox that the claim has besides its own: the answer to its creation was lost, and a warm one came first. */
  surplus?: Stored<Sandbox>
  next: Resolution
}

export interface ClaimWorld {
  claim: Stored<SandboxClaim>
  findSandbox(name: string): Stored<Sandbox> | undefined
}

/** Finds the claim's sandbox in what is recorded: status first, then the assignment, then the claim's own name. */
export function planClaim(world: ClaimWorld): ClaimPlan {
  const plan = planBinding(world)
  const { claim, findSandbox } = world
  if (plan.next.kind !== 'use' || plan.next.sandbox.metadata.name === claim.metadata.name) return plan
  const sameName = findSandbox(claim.metadata.name)
  const isSurplus = sameName && isControlledBy(sameName, claim) && !sameName.metadata.deletionTimestamp
  return isSurplus ? { ...plan, surplus: sameName } : plan
}

function planBinding(world: ClaimWorld): ClaimPlan {
  const { claim, findSandbox } = world
  const bound = claim.status?.sandbox?.name
  const boundSandbox = bound ? findSandbox(bound) : undefined
  if (bound && boundSandbox && isControlledBy(boundSandbox, claim)) {
    return { next: { kind: 'use', sandbox: boundSandbox, launchType: launchTypeOf(claim, bound) } }
  }
  const reference = referenceOf(claim)
  const assigned = reference && followReference(reference, world)
  if (assigned?.next) return { next: assigned.next }
  const plan = { next: withoutAssignment(world) }
  return assigned?.failure && reference ? { ...plan, dropReference: { reference, failure: assigned.failure } } : plan
}

function followReference(
  reference: Reference,
  { claim, findSandbox }: ClaimWorld,
): { next?: Resolution; failure?: string } {
  const sandbox = findSandbox(reference.name)
  if (!sandbox) return { failure: 'failed to remove stale sandbox reference from claim metadata' }
  const migrate = reference.carrier === 'label' ? { migrate: reference } : {}
  if (isControlledBy(sandbox, claim)) return { next: { kind: 'use', sandbox, launchType: 'warm', ...migrate } }
  if (poolOf(sandbox) !== undefined) {
    if (whyNotCandidate(sandbox, claim)) return { failure: 'failed to remove invalid sandbox reference' }
    return { next: { kind: 'transfer', sandbox, ...migrate } }
  }
  if (isExtensionsOwner(controllerOf(sandbox), 'SandboxClaim')) {
    return { failure: 'failed to remove sandbox reference owned by another claim' }
  }
  return {}
}

function withoutAssignment({ claim, findSandbox }: ClaimWorld): Resolution {
  const sameName = findSandbox(claim.metadata.name)
  if (sameName && !isControlledBy(sameName, claim)) {
    return { kind: 'collision', message: collisionText(sameName.metadata.name, claim.metadata.name) }
  }
  if (sameName) return { kind: 'use', sandbox: sameName, launchType: 'cold' }
  const { env = [], volumeClaimTemplates = [] } = claim.spec
  return { kind: env.length > 0 || volumeClaimTemplates.length > 0 ? 'cold' : 'warmOrCold' }
}

export function collisionText(sandbox: string, claim: string): string {
  return `sandbox ${quote(sandbox)} is not controlled by claim ${quote(claim)}. Please use a different claim name or delete the sandbox manually`
}

export function referenceOf(claim: SandboxClaim): Reference | undefined {
  const annotated = claim.metadata?.annotations?.[annotations.assignedSandbox]
  if (annotated) return { name: annotated, carrier: 'annotation' }
  const labelled = claim.metadata?.labels?.[labels.assignedSandbox]
  return labelled ? { name: labelled, carrier: 'label' } : undefined
}

function launchTypeOf(claim: Stored<SandboxClaim>, bound: string): 'warm' | 'cold' {
  const isAssigned =
    claim.metadata.annotations?.[annotations.assignedSandbox] === bound ||
    claim.metadata.labels?.[labels.assignedSandbox] === bound
  return isAssigned || bound !== claim.metadata.name ? 'warm' : 'cold'
}

const warmGraceMs = 2_000
const warmRetryMs = 100

/** How long a young claim waits for a warm sandbox that only lacks its address; undefined once it has waited enough. */
export function warmRetryAfterMs(claim: Stored<SandboxClaim>, now: Date): number | undefined {
  const createdAt = Date.parse(claim.metadata.creationTimestamp)
  if (Number.isNaN(createdAt)) return undefined
  const leftMs = createdAt + warmGraceMs - now.getTime()
  return leftMs > 0 ? Math.min(warmRetryMs, leftMs) : undefined
}
