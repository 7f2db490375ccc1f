/** How long a request that was sent may go on after its caller has given up. */
const answerWithinMs = 5_000

/**
 * Lets a request that changes something come to its answer when its caller gives up: cut off on its way it may be carried out
 * all the same, and what it made would stay behind, or it would come after what the caller asks for next. The caller's own
 * signal ends what follows.
 */
export async function outlasting<T>(
  signal: AbortSignal | undefined,
  send: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (!signal) return send(undefined)
  signal.throwIfAborted()
  const end = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const begin = () => {
    timer = setTimeout(() => end.abort(signal.reason), answerWithinMs)
  }
  signal.addEventListener('abort', begin, { once: true })
  try {
    return await send(end.signal)
  } finally {
    signal.removeEventListener('abort', begin)
    clearTimeout(timer)
  }
}
