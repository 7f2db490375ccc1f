import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { ByteStream } from '@corral/ports'

/** A socket as a `ByteStream`, once it is connected. Aborting `signal` drops it at any time. */
export async function socketStream(socket: Socket, signal?: AbortSignal, event = 'connect'): Promise<ByteStream> {
  const drop = () => socket.destroy(signal?.reason instanceof Error ? signal.reason : undefined)
  signal?.addEventListener('abort', drop, { once: true })
  socket.once('close', () => signal?.removeEventListener('abort', drop))
  if (signal?.aborted) drop()
  await once(socket, event)
  // Reads and writes throw it. Without a listener an error event ends the program.
  socket.on('error', () => {})
  return {
    [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator](),
    async write(chunk) {
      if (!socket.writable) throw new Error('the connection is closed')
      if (!socket.write(chunk) && !socket.destroyed) await drained(socket)
      if (socket.errored) throw socket.errored
    },
    end: () => void socket.end(),
    destroy: (error) => void socket.destroy(error),
    ref: () => void socket.ref(),
    unref: () => void socket.unref(),
  }
}

/** Room again, or closed. Leaves no listener behind: one for each write that had to wait would look like a leak. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done).off('close', done)
      resolve()
    }
    socket.on('drain', done).on('close', done)
  })
}
