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
  // Told to whoever reads or writes.
  socket.on('error', () => {})
  return {
    [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator](),
    async write(chunk) {
      if (!socket.writable) throw new Error('the connection is closed')
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
    },
    end: () => void socket.end(),
    destroy: (error) => void socket.destroy(error),
    ref: () => void socket.ref(),
    unref: () => void socket.unref(),
  }
}
