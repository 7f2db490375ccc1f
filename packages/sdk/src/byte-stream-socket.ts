import { Duplex } from 'node:stream'
import type { ByteStream } from '@corral/ports'

/**
 * What may wait behind a message that is being sent, to go in one with it: with less, a large upload stops at every chunk
 * until that has left.
 */
const waitingBytes = 256 * 1024

export interface SocketOptions {
  /** May throw at the first bytes that come: then they are the failure of the connection. */
  readonly check?: (first: Uint8Array) => void
  /** Told of a failure, which then looks like an ordinary end: for owners who may have stopped listening for errors. */
  readonly onFailure?: (error: Error) => void
}

/**
 * A `ByteStream` as the socket that Node's HTTP client wants. Reads ahead of its reader by one high-water mark, so that
 * the end of an idle connection is noticed and the connection is not used again.
 */
export class ByteStreamSocket extends Duplex {
  #stream: ByteStream | undefined
  readonly #opening: Promise<ByteStream>
  #wanted: (() => void) | undefined

  readonly #options: SocketOptions

  /** A stream that is still being opened takes writes as soon as it stands. */
  constructor(stream: ByteStream | Promise<ByteStream>, options: SocketOptions = {}) {
    super({ allowHalfOpen: false, writableHighWaterMark: waitingBytes })
    this.#options = options
    this.#opening = Promise.resolve(stream)
    if (!(stream instanceof Promise)) this.#stream = stream
    void this.#pump()
  }

  override _read(): void {
    this.#wanted?.()
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send([chunk], done)
  }

  /** Node's HTTP writes a chunk of a body as length, bytes and line end: sent apart they are three messages of a tunnel. */
  override _writev(pieces: { chunk: Uint8Array }[], done: (error?: Error | null) => void): void {
    this.#send(
      pieces.map(({ chunk }) => chunk),
      done,
    )
  }

  #send(chunks: readonly Uint8Array[], done: (error?: Error | null) => void): void {
    const write = (stream: ByteStream): Promise<void> =>
      stream.writeAll ? stream.writeAll(chunks) : stream.write(Buffer.concat(chunks))
    const writing = this.#stream ? write(this.#stream) : this.#opening.then(write)
    writing.then(
      () => done(),
      (reason: unknown) => {
        const error = asError(reason)
        if (!this.#options.onFailure) return done(error)
        this.#fail(error)
        done()
      },
    )
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#opening.then(
      (stream) => {
        stream.end()
        done()
      },
      () => done(),
    )
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#wanted?.()
    // One that is not there yet is dropped as soon as it is; one that never comes has told the pump.
    this.#opening.then(
      (stream) => stream.destroy(error ?? undefined),
      () => {},
    )
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
  /** Called by the HTTP agent when a kept connection is used again, and when it becomes idle. */
  ref(): this {
    this.#stream?.ref?.()
    return this
  }
  unref(): this {
    this.#stream?.unref?.()
    return this
  }

  /** Never rejects: a failure destroys the socket with it. */
  async #pump(): Promise<void> {
    try {
      const stream = await this.#opening
      this.#stream = stream
      let { check } = this.#options
      for await (const chunk of stream) {
        if (this.destroyed) return
        check?.(chunk)
        check = undefined
        if (!this.push(chunk)) await new Promise<void>((resolve) => this.#onWanted(resolve))
      }
      if (this.destroyed) return
      this.push(null)
      // An idle connection has no reader that would notice its end.
      if (this.readableLength === 0) this.destroy()
    } catch (error) {
      this.#fail(asError(error))
    }
  }

  #fail(error: Error): void {
    const { onFailure } = this.#options
    onFailure?.(error)
    this.destroy(onFailure ? undefined : error)
  }

  #onWanted(resolve: () => void): void {
    this.#wanted = () => {
      this.#wanted = undefined
      resolve()
    }
    if (this.destroyed) this.#wanted()
  }
}

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)))
