import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Turns of the event loop without a byte after which a pipe that is being read counts as empty. */
const idleTurns = 3
/** More than a pipe or a socket of the kernel holds: what comes after it was written later. */
const mostHeldBytes = 4 * 1024 * 1024

/**
 * Settles once everything that was in the stream's pipe at the time of the call has been handed to its listeners, or
 * the stream has ended. For the output of a process that is gone: the end of the stream may never come, because a
 * child left behind holds the pipe open. No clock is asked: a machine that stalls for seconds would lose the rest.
 * A stream that is paused is waited for; `signal` gives up.
 */
export async function presentEnd(stream: Readable, signal: AbortSignal): Promise<void> {
  let idle = 0
  let bytes = 0
  const count = (chunk: Buffer): void => {
    idle = 0
    bytes += chunk.length
  }
  // Put first, so that a turn in which a later listener pauses the stream is not taken for an idle one.
  stream.prependListener('data', count)
  while (!isOver(stream) && !signal.aborted && idle < idleTurns && bytes < mostHeldBytes) {
    if (stream.isPaused()) await resumed(stream, signal)
    idle += 1
    await nextTurn()
  }
  stream.off('data', count)
}

const isOver = (stream: Readable): boolean => stream.readableEnded || stream.destroyed

function resumed(stream: Readable, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      stream.off('resume', settle).off('close', settle)
      signal.removeEventListener('abort', settle)
      resolve()
    }
    stream.on('resume', settle).on('close', settle)
    signal.addEventListener('abort', settle)
  })
}
