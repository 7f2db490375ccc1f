import { once } from 'node:events'
import { constants, open } from 'node:fs'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import { CorralError } from '@corral/protocol'

/**
 * Writes to a FIFO at the reader's pace. Rejects with `StdinClosed` when the FIFO has no reader any more, and ends early when
 * `signal` aborts. A socket instead of a file: a write to a full pipe then waits for room without holding a thread.
 */
export async function writeToFifo(path: string, chunks: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  const socket = await openFifo(path)
  const failed = new Promise<never>((_resolve, reject) => {
    socket.once('error', (cause) => reject(new CorralError('StdinClosed', 'the process closed its input', { cause })))
    const abort = () => reject(new CorralError('Aborted', 'the writer went away'))
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
  })
  try {
    await Promise.race([failed, writeAll(socket, chunks, signal)])
  } finally {
    failed.catch(() => {})
    socket.destroy()
  }
}

async function writeAll(socket: Socket, chunks: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
  for await (const chunk of chunks) {
    if (!socket.write(chunk)) await once(socket, 'drain', { signal })
  }
  await new Promise<void>((resolve) => socket.end(resolve))
}

const openDescriptor = promisify(open)

async function openFifo(path: string): Promise<Socket> {
  try {
    const fd = await openDescriptor(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: false, writable: true })
  } catch (cause) {
    throw new CorralError('StdinClosed', 'the process does not read its input', { cause })
  }
}
