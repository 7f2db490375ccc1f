/** A body that is refused is read as far as this, for as long as this. */
const maxBytes = 64 * 1024 * 1024
const maxMs = 10_000

/**
 * Reads a body that is refused for its size and drops it, so that a client that still sends gets the answer and not a broken
 * connection. False where there is more of it than that, or it cannot be read.
 */
export async function dropBody({ body }: Request): Promise<boolean> {
  if (!body || body.locked) return body === null
  const reader = body.getReader()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    reader.cancel().catch(() => undefined)
  }, maxMs)
  try {
    for (let bytes = 0; bytes <= maxBytes; ) {
      const { done, value } = await reader.read()
      if (done) return !isLate
      bytes += value.byteLength
    }
    return false
  } catch {
    return false // the client has gone
  } finally {
    clearTimeout(timer)
    reader.releaseLock()
  }
}
