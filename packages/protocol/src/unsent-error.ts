/**
 * No connection came about, so nothing of the request was sent: it has changed nothing, and may be repeated. A `fetch` for a
 * daemon throws it to say so.
 */
export class UnsentError extends Error {
  override readonly name = 'UnsentError'
}

const deepestCause = 10

/** Whether an error, or what lies beneath it, is an `UnsentError`; of another copy of this package, too. */
export function isUnsent(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < deepestCause; cause = cause.cause, depth += 1) {
    if (cause.name === 'UnsentError') return true
  }
  return false
}
