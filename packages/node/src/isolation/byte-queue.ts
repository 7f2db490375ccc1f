/**
 * Chunks on their way to one reader. `push` never waits; `onRoom` runs when the reader has brought it below its mark
 * again, so that the source can be paused in between. A reader that leaves (or `abandon`) turns it into a sink.
 */
export class ByteQueue implements AsyncIterable<Uint8Array> {
  #chunks: Uint8Array[] = []
  #bytes = 0
  #ended = false
  #abandoned = false
  #failure: Error | undefined
  #wake: (() => void) | undefined

  constructor(
    private readonly markBytes: number = 1024 * 1024,
    private readonly onRoom: () => void = () => {},
  ) {}

  get isFull(): boolean {
    return this.#bytes >= this.markBytes
  }

  push(chunk: Uint8Array): void {
    if (this.#ended || this.#abandoned || chunk.length === 0) return
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    this.#wake?.()
  }

  end(failure?: Error): void {
    if (this.#ended) return
    this.#ended = true
    this.#failure = failure
    this.#wake?.()
  }

  abandon(): void {
    this.#abandoned = true
    this.#chunks = []
    this.#bytes = 0
    this.#wake?.()
    this.onRoom()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      while (!this.#abandoned) {
        const chunk = this.#chunks.shift()
        if (chunk) {
          const wasFull = this.isFull
          this.#bytes -= chunk.length
          if (wasFull && !this.isFull) this.onRoom()
          yield chunk
          continue
        }
        if (this.#failure) throw this.#failure
        if (this.#ended) return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
      }
    } finally {
      this.abandon()
    }
  }
}
