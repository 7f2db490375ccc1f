import { Duplex } from 'node:stream'
import type { ByteStream } from '@corral/resources'

/**
 * A `ByteStream` as the socket that Node's HTTP client wants. Reads ahead of its reader by one high-water mark, so that
 * the end of an idle connection is noticed and the connection is not used again.
 */
export class ByteStreamSocket extends Duplex {
  readonly #stream: ByteStream
  #wanted: (() => void) | undefined

  constructor(stream: ByteStream) {
    super({ allowHalfOpen: false })
    this.#stream = stream
    void this.#pump()
  }

  override _read(): void {
    this.#wanted?.()
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#stream.write(chunk).then(
      () => done(),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
    )
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#stream.end()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#wanted?.()
    this.#stream.destroy(error ?? undefined)
    done(error)
  }

  /** Parts of a socket the HTTP agent calls; a stream inside another connection has nothing to set. */
  setKeepAlive(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setTimeout(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }

  /** Never rejects: a failure destroys the socket with it. */
  async #pump(): Promise<void> {
    try {
      for await (const chunk of this.#stream) {
        if (this.destroyed) return
        if (!this.push(chunk)) await new Promise<void>((resolve) => this.#onWanted(resolve))
      }
      if (this.destroyed) return
      this.push(null)
      // Nobody reads an idle connection, so nobody would see its end.
      if (this.readableLength === 0) this.destroy()
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #onWanted(resolve: () => void): void {
    this.#wanted = () => {
      this.#wanted = undefined
      resolve()
    }
    if (this.destroyed) this.#wanted()
  }
}
