import { setTimeout as delay } from 'node:timers/promises'

export interface Backoff {
  readonly firstMs: number
  readonly maxMs: number
}

/** Exponential with jitter: attempt 0 waits between half of `firstMs` and all of it. `random` is in [0, 1). */
export function backoffMs(attempt: number, { firstMs, maxMs }: Backoff, random: number): number {
  const full = Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30))
  return Math.round(full * (0.5 + random / 2))
}

/** Waits, or ends at once when `signal` aborts. Tells whether the whole time passed. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<boolean> {
  if (signal?.aborted) return false
  try {
    await delay(ms, undefined, signal ? { signal } : {})
    return true
  } catch {
    return false // the only way this rejects is the abort
  }
}
