import { type Condition, findCondition, type SandboxClaim } from '@corral/resources'

export type ClaimExpiry = { expired: true } | { expired: false; leftMs?: number }

/** Whether the claim's time is up: at its shutdown time or its time to live after the Pod finished, whichever is earlier. */
export function claimExpiry(claim: SandboxClaim, conditions: readonly Condition[] | undefined, now: Date): ClaimExpiry {
  const { shutdownTime, ttlSecondsAfterFinished } = claim.spec.lifecycle ?? {}
  const ends: number[] = []
  if (shutdownTime) ends.push(Date.parse(shutdownTime))
  const finished = findCondition(conditions, 'Finished')
  if (ttlSecondsAfterFinished !== undefined && finished?.status === 'True' && finished.lastTransitionTime) {
    ends.push(Date.parse(finished.lastTransitionTime) + ttlSecondsAfterFinished * 1000)
  }
  if (ends.length === 0) return { expired: false }
  const leftMs = Math.min(...ends) - now.getTime()
  return leftMs <= 0 ? { expired: true } : { expired: false, leftMs }
}

/** What a claim needs with regard to its time. Its end is recorded one pass before anything is deleted. */
export type ExpiryMove =
  /** It is served: its time is not up. */
  | { move: 'serve' }
  | { move: 'mark' }
  | { move: 'deleteClaim'; policy: 'Delete' | 'DeleteForeground' }
  /** A retained claim outlives its sandbox. */
  | { move: 'deleteSandbox' }

export function expiryMove(claim: SandboxClaim, now: Date): ExpiryMove {
  const conditions = claim.status?.conditions
  if (!claimExpiry(claim, conditions, now).expired) return { move: 'serve' }
  if (!isMarkedExpired(conditions)) return { move: 'mark' }
  const policy = claim.spec.lifecycle?.shutdownPolicy
  return policy === 'Delete' || policy === 'DeleteForeground'
    ? { move: 'deleteClaim', policy }
    : { move: 'deleteSandbox' }
}

export function isMarkedExpired(conditions: readonly Condition[] | undefined): boolean {
  return findCondition(conditions, 'Ready')?.reason === 'ClaimExpired'
}
