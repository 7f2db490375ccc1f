/** How long failed work rests: `baseMs` doubled per failure, never more than `maxMs`. */
export interface BackoffPolicy {
  readonly baseMs: number
  readonly maxMs: number
}

/** client-go's limits for a failing item: 5 ms, 10 ms, 20 ms ... 1,000 s. */
export const itemBackoff: BackoffPolicy = { baseMs: 5, maxMs: 1_000_000 }

/** The pause after the given number of earlier failures (0 for the first one). */
export function backoffMs(failures: number, policy: BackoffPolicy = itemBackoff): number {
  // The exponent is bounded before the multiplication: 2 ** 1100 is Infinity.
  return Math.min(policy.maxMs, policy.baseMs * 2 ** Math.min(failures, 60))
}
