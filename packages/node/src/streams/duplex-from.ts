import { Duplex } from 'node:stream'
import type { ByteStream } from '@corral/ports'

/** A Node stream over a `ByteStream`, for the parts of Node that insist on one. */
export function duplexFrom(stream: ByteStream): Duplex {
  const reader = stream[Symbol.asyncIterator]()
  return new Duplex({
    allowHalfOpen: true,
    read() {
      reader.next().then(
        ({ done, value }) => this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength)),
        (error: Error) => this.destroy(error),
      )
    },
    write(chunk: Buffer, _encoding, callback) {
      stream.write(chunk).then(() => callback(), callback)
    },
    final(callback) {
      stream.end()
      callback()
    },
    destroy(error, callback) {
      stream.destroy(error ?? undefined)
      callback(error)
    },
  })
}
