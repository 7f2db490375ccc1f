import { errorCode } from '@corral/resources'
import { type Backoff, backoffMs, sleep } from './backoff.js'
import type { TransportResponse } from './kube-transport.js'

const attempts = 5
const pause: Backoff = { firstMs: 100, maxMs: 2_000 }
/** A server that asks for a longer pause than this is better told to the caller. */
const longestRetryAfterMs = 10_000

/**
 * Repeats a read that found no connection, or a server too busy to answer (429, 503), waiting as long as it asks.
 * Gives up after five attempts with the last answer or error; ends at once when `signal` aborts.
 */
export async function retryReads(
  read: () => Promise<TransportResponse>,
  signal: AbortSignal | undefined,
  /** Told how each attempt after the first was answered, if at all. */
  onRepeat: (status: number | undefined) => void = () => {},
): Promise<TransportResponse> {
  for (let attempt = 0; ; attempt++) {
    const isLast = attempt === attempts - 1
    let waitMs = backoffMs(attempt, pause, Math.random())
    try {
      const response = await read()
      if (attempt > 0) onRepeat(response.status)
      if (isLast || (response.status !== 429 && response.status !== 503)) return response
      waitMs = Math.max(waitMs, response.retryAfterMs ?? 0)
      if (waitMs > longestRetryAfterMs) return response
    } catch (error) {
      if (attempt > 0) onRepeat(undefined)
      if (isLast || errorCode(error) !== 'ConnectionLost') throw error
    }
    if (!(await sleep(waitMs, signal))) signal?.throwIfAborted()
  }
}
