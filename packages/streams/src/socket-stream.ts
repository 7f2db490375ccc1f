import type { Duplex } from 'node:stream'
import type { ByteStream } from '@corral/ports'

/** A socket as ByteStream. Reading pauses the socket by itself; `write` waits only while the socket's buffer is full. */
export function socketStream(socket: Duplex, head: Uint8Array): ByteStream {
  if (head.length > 0) socket.unshift(head)
  socket.setMaxListeners(0) // every stream that waits for room listens
  socket.on('error', () => {}) // readers and writers see it; alone it must not end the process
  return {
    [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>,
    write: (chunk) => writeTo(socket, chunk),
    end: () => void socket.end(),
    destroy: (error) => void socket.destroy(error),
  }
}

/** Turns on the kernel's own probes: a peer that vanished is noticed without traffic, one that is merely slow is kept. */
export function probePeer(socket: Duplex): void {
  if ('setKeepAlive' in socket && typeof socket.setKeepAlive === 'function') socket.setKeepAlive(true, 15_000)
  if ('setNoDelay' in socket && typeof socket.setNoDelay === 'function') socket.setNoDelay(true)
}

function writeTo(socket: Duplex, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!socket.writable) return reject(new Error('the connection is closed'))
    if (socket.write(chunk)) return resolve()
    const settle = (finish: () => void) => () => {
      socket.off('drain', onDrain)
      socket.off('close', onClose)
      finish()
    }
    const onDrain = settle(resolve)
    const onClose = settle(() => reject(new Error('the connection is closed')))
    socket.once('drain', onDrain)
    socket.once('close', onClose)
  })
}
