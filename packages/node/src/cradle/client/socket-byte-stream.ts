import type { Socket } from 'node:net'
import type { ByteStream } from '@corral/ports'

/**
 * A connected socket (made with `allowHalfOpen`) as a `ByteStream`. `early` is what arrived before it was handed over.
 * Its errors belong to the stream from here on.
 */
export function socketByteStream(socket: Socket, early: Uint8Array = new Uint8Array(0)): ByteStream {
  let failure: Error | undefined
  socket.on('error', (error) => {
    failure = error
  })
  return {
    async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
      if (early.length > 0) yield early
      for await (const chunk of socket.iterator({ destroyOnReturn: false })) yield chunk as Uint8Array
    },
    async write(chunk: Uint8Array): Promise<void> {
      if (failure) throw failure
      await new Promise<void>((resolve, reject) => {
        socket.write(chunk, (error) => (error ? reject(error) : resolve()))
      })
    },
    end(): void {
      socket.end()
    },
    destroy(error?: Error): void {
      socket.destroy(error)
    },
  }
}
