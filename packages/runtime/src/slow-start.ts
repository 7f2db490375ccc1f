export interface SlowStartResult {
  /** Calls that succeeded, the failed group's included. */
  succeeded: number
  /** The first failure in call order, or the abort reason. */
  error?: unknown
}

/**
 * Makes `count` calls in concurrent groups of 1, 2, 4, 8 ... A failure lets its group finish and ends the run, so a server
 * that refuses everything is asked once and not `count` times. Aborting stops before the next group. Never rejects.
 */
export async function slowStart(
  count: number,
  call: (index: number) => Promise<void>,
  signal?: AbortSignal,
): Promise<SlowStartResult> {
  let succeeded = 0
  let started = 0
  for (let groupSize = 1; started < count; groupSize *= 2) {
    if (signal?.aborted) return { succeeded, error: signal.reason }
    const size = Math.min(groupSize, count - started)
    const outcomes = await Promise.allSettled(Array.from({ length: size }, (_, at) => call(started + at)))
    started += size
    const failed = outcomes.filter((outcome) => outcome.status === 'rejected')
    succeeded += size - failed.length
    if (failed[0]) return { succeeded, error: failed[0].reason }
  }
  return { succeeded }
}
