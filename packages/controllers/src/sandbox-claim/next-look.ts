import { type ClaimProblem, isSuppressed, quietRetryMs } from './claim-problem.js'
import type { ClaimExpiry } from './expiry.js'

/** A requeue "at once" after expiry was recorded: the next pass must start from what the server stored. */
export const immediatelyMs = 1
/** The event of the conflicting write usually comes first; this is for the case that it came already. */
const lostWriteRetryMs = 500

/** When a claim is looked at again once its status is written. */
export type NextLook =
  /** The problem goes to the queue, which tries again with back-off. */
  { kind: 'fail' } | { kind: 'rest'; requeueAfterMs?: number }

export function nextLook({
  problem,
  isExpired,
  expiry,
  isWritten,
}: {
  problem: ClaimProblem | undefined
  /** Whether the claim's time was up when the pass began: then no timer is needed any more. */
  isExpired: boolean
  expiry: ClaimExpiry
  /** Whether the server holds the status that was written; false after a conflict. */
  isWritten: boolean
}): NextLook {
  const leftMs = isExpired ? undefined : expiry.expired ? immediatelyMs : expiry.leftMs
  const lostMs = isWritten ? undefined : lostWriteRetryMs
  const quietMs = problem && quietRetryMs(problem)
  if (problem && quietMs === undefined && !isSuppressed(problem)) return { kind: 'fail' }
  const delays = [leftMs, lostMs, quietMs].filter((delay) => delay !== undefined)
  return delays.length === 0 ? { kind: 'rest' } : { kind: 'rest', requeueAfterMs: Math.min(...delays) }
}
