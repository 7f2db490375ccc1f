import type { ByteStream } from '@corral/ports'

/**
 * Carries bytes both ways until both sides have ended. Only a failure to read from the target is thrown: what goes wrong
 * on the client's side no reader is left, and a target that stops listening may still answer. Both streams are
 * released in the end, at once when `signal` aborts. `onAnswered` runs when the target has said all it will say.
 */
export async function joinStreams(
  client: ByteStream,
  target: ByteStream,
  signal: AbortSignal,
  onAnswered: () => void = () => {},
): Promise<void> {
  let isClientLost = false
  const loseClient = () => {
    isClientLost = true
    client.destroy()
    target.destroy()
  }
  if (signal.aborted) loseClient()
  signal.addEventListener('abort', loseClient, { once: true })
  try {
    await Promise.all([carryIn(client, target, loseClient), carryOut(target, client, loseClient, onAnswered)])
  } catch (error) {
    if (isClientLost) return
    loseClient()
    throw error
  } finally {
    signal.removeEventListener('abort', loseClient)
  }
}

async function carryIn(client: ByteStream, target: ByteStream, loseClient: () => void): Promise<void> {
  let isTargetDeaf = false
  try {
    for await (const chunk of client) {
      // Read on all the same, to see the client's end.
      if (!isTargetDeaf) await target.write(chunk).catch(() => (isTargetDeaf = true))
    }
  } catch {
    return loseClient()
  }
  target.end()
}

async function carryOut(
  target: ByteStream,
  client: ByteStream,
  loseClient: () => void,
  onAnswered: () => void,
): Promise<void> {
  for await (const chunk of target) {
    try {
      await client.write(chunk)
    } catch {
      return loseClient()
    }
  }
  client.end()
  onAnswered()
}

/** The words for a port that could not be reached, as kubectl shows them to its user. */
export function forwardFailure(port: number, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return `error forwarding port ${port}: ${message}`
}
