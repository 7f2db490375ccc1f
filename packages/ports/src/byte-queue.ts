/**
 * Chunks from one producer to one reader. It never refuses a chunk: `isFull` tells the producer to pause its source,
 * `onDrain` that it may go on. A reader that leaves early, or `discard`, makes it drop everything from then on.
 */
export class ByteQueue implements AsyncIterable<Uint8Array> {
  private readonly chunks: Uint8Array[] = []
  private bytes = 0
  private ending: { error?: unknown } | undefined
  private isDiscarding = false
  private wake: (() => void) | undefined

  constructor(
    readonly highWaterBytes: number = 256 * 1024,
    private readonly onDrain: () => void = () => {},
  ) {}

  get isFull(): boolean {
    return this.bytes >= this.highWaterBytes
  }

  push(chunk: Uint8Array): void {
    if (this.ending || this.isDiscarding || chunk.length === 0) return
    this.chunks.push(chunk)
    this.bytes += chunk.length
    this.wake?.()
  }

  /** No more chunks come; with an error the reader gets it after what is queued. Only the first call counts. */
  end(error?: unknown): void {
    this.ending ??= error === undefined ? {} : { error }
    this.wake?.()
  }

  discard(): void {
    this.isDiscarding = true
    this.take(this.chunks.length)
    this.wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      while (true) {
        const chunk = this.chunks[0]
        if (chunk) {
          this.take(1)
          yield chunk
        } else if (this.ending) {
          if (this.ending.error !== undefined) throw this.ending.error
          return
        } else if (this.isDiscarding) return
        else await new Promise<void>((resolve) => this.waitFor(resolve))
      }
    } finally {
      this.discard()
    }
  }

  private waitFor(resolve: () => void): void {
    this.wake = () => {
      this.wake = undefined
      resolve()
    }
  }

  private take(count: number): void {
    const wasFull = this.isFull
    for (const chunk of this.chunks.splice(0, count)) this.bytes -= chunk.length
    if (wasFull && !this.isFull) this.onDrain()
  }
}
