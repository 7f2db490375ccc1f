import { readSync } from 'node:fs'
import type { ReadStream } from 'node:tty'
import type { IPty } from '@lydell/node-pty'

/** More than the kernel holds for a terminal; what another process goes on writing is not waited for. */
const maxRestBytes = 1024 * 1024

/**
 * Reads what is left in a terminal before the library closes it, which it does without a look: 200 ms after the exit, also
 * where the daemon was busy or paused until then, and when the other side has hung up after a read that was not full, while the
 * kernel may still hand the last lines over. They would be lost.
 */
export function readBeforeDestroy(pty: IPty, onData: (data: Uint8Array) => void): void {
  const { _socket: socket, fd } = pty as unknown as { _socket: ReadStream; fd: number }
  const destroy = socket.destroy.bind(socket)
  socket.destroy = (error) => {
    if (!socket.destroyed) {
      // What the stream holds comes as events, like everything before it.
      while (socket.read() !== null);
      for (const data of restOf(fd)) onData(data)
    }
    return destroy(error)
  }
}

function* restOf(fd: number): Generator<Uint8Array> {
  for (let bytes = 0; bytes < maxRestBytes; ) {
    const data = Buffer.allocUnsafe(64 * 1024)
    let length: number
    try {
      length = readSync(fd, data)
    } catch {
      return // EIO: the other side has hung up. EAGAIN: a process in the background keeps it open and says nothing.
    }
    if (length === 0) return
    bytes += length
    yield data.subarray(0, length)
  }
}
