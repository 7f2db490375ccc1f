import type { SandboxError } from './sandbox-error.js'

/** Unread bytes at which the command has to wait while the stream has a reader; before it has one, four times as many. */
const highWaterBytes = 256 * 1024
const unreadBytes = 4 * highWaterBytes
const tailBytes = 64 * 1024

/** Values on their way from the command to one reader. Unwanted ones are kept as a short tail, so that they block nothing. */
export class OutputChannel<T = Uint8Array> implements AsyncIterable<T> {
  readonly #size: (value: T) => number
  #queue: T[] = []
  #bytes = 0
  #isWanted = false
  #isDrained = false
  #isClosed = false
  #failure: SandboxError | undefined
  #wake: (() => void)[] = []
  readonly #onRoom: () => void

  /** `onRoom` is told when it may not be full any more, or has got a reader. */
  constructor(onRoom: () => void, size: (value: T) => number = (value) => (value as Uint8Array).length) {
    this.#onRoom = onRoom
    this.#size = size
  }

  get isWanted(): boolean {
    return this.#isWanted
  }

  get isDrained(): boolean {
    return this.#isDrained
  }

  get isFull(): boolean {
    if (this.#isClosed || (this.#isDrained && !this.#isWanted)) return false
    return this.#bytes >= (this.#isWanted ? highWaterBytes : unreadBytes)
  }

  /** The stream has a reader from now on. */
  want(): void {
    this.#isWanted = true
    this.#onRoom()
  }

  /** The stream will get no reader: values are dropped, unless it has one already. */
  drain(): void {
    this.#isDrained = true
    this.#trim()
    this.#onRoom()
  }

  push(value: T): void {
    if (this.#isClosed) return
    this.#queue.push(value)
    this.#bytes += this.#size(value)
    this.#trim()
    for (const wake of this.#wake.splice(0)) wake()
  }

  close(failure?: SandboxError): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#failure = failure
    for (const wake of this.#wake.splice(0)) wake()
    this.#onRoom()
  }

  /** What is left, as text. */
  rest(): string {
    return this.#queue.map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : '')).join('')
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    this.want()
    try {
      for (;;) {
        const value = this.#queue.shift()
        if (value !== undefined) {
          this.#bytes -= this.#size(value)
          if (!this.isFull) this.#onRoom()
          yield value
        } else if (this.#failure) throw this.#failure
        else if (this.#isClosed) return
        else await new Promise<void>((resolve) => this.#wake.push(resolve))
      }
    } finally {
      // A reader that stops early wants nothing more.
      this.#isWanted = false
      this.drain()
    }
  }

  #trim(): void {
    if (!this.#isDrained || this.#isWanted) return
    while (this.#queue.length > 1 && this.#bytes > tailBytes) this.#bytes -= this.#size(this.#queue.shift()!)
  }
}

/** One stream of a command: bytes as they come, or lines, or all of it. */
export class ProcessOutput implements AsyncIterable<Uint8Array> {
  readonly #channel: OutputChannel

  constructor(channel: OutputChannel) {
    this.#channel = channel
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.#channel[Symbol.asyncIterator]()
  }

  /** Lines without their ends, decoded as UTF-8; a last line without an end is one too. */
  async *lines(): AsyncIterable<string> {
    const decoder = new TextDecoder()
    let pending = ''
    for await (const chunk of this) {
      const parts = (pending + decoder.decode(chunk, { stream: true })).split('\n')
      pending = parts.pop() ?? ''
      for (const line of parts) yield line.endsWith('\r') ? line.slice(0, -1) : line
    }
    pending += decoder.decode()
    if (pending !== '') yield pending
  }

  async bytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    for await (const chunk of this) chunks.push(chunk)
    return new Uint8Array(Buffer.concat(chunks))
  }

  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes())
  }
}
