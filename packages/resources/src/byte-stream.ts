/**
 * A two-way stream of bytes. Iterating reads until the other side half-closes; `write` resolves when the chunk has been
 * taken (back-pressure); `end` half-closes our side; `destroy` drops both sides at once. After a failure iteration throws.
 */
export interface ByteStream extends AsyncIterable<Uint8Array> {
  write(chunk: Uint8Array): Promise<void>
  end(): void
  destroy(error?: Error): void
}

export interface ProcessExit {
  /** 0-255; a process ended by signal n reports 128 + n. */
  exitCode: number
  /** The signal's number where one ended the process. */
  signal?: number
  /** Set when the process could not be started or the sandbox under it was lost. */
  message?: string
}

/** A process behind exec or attach. With `tty` everything arrives on stdout. */
export interface DuplexProcess {
  readonly stdout: AsyncIterable<Uint8Array>
  readonly stderr: AsyncIterable<Uint8Array>
  writeStdin(chunk: Uint8Array): Promise<void>
  /** Half-close: the process reads EOF. */
  endStdin(): void
  resize(columns: number, rows: number): void
  /** Ends the process (exec) or just lets go of it (attach). */
  kill(): void
  /** Settles once all output has been delivered to the iterables or they were abandoned. Never rejects. */
  readonly exited: Promise<ProcessExit>
}

export interface PodRef {
  namespace: string
  name: string
  uid?: string
}

export interface ExecStreamOptions {
  container: string
  command: readonly string[]
  stdin: boolean
  stdout: boolean
  stderr: boolean
  tty: boolean
  signal?: AbortSignal
}

export type AttachStreamOptions = Omit<ExecStreamOptions, 'command'>

export interface LogStreamOptions {
  container: string
  follow?: boolean
  previous?: boolean
  sinceSeconds?: number
  sinceTime?: string
  timestamps?: boolean
  tailLines?: number
  limitBytes?: number
  signal?: AbortSignal
}

/**
 * Who serves the streaming sub-resources of pods: the kubelet's role. The API server has already checked that pod and
 * container exist and run. A failure before the stream starts rejects with an `ApiError`-like `{ code, message }`.
 */
export interface PodStreams {
  exec(pod: PodRef, options: ExecStreamOptions): Promise<DuplexProcess>
  attach(pod: PodRef, options: AttachStreamOptions): Promise<DuplexProcess>
  /** At once, or once a node elsewhere has agreed. */
  logs(pod: PodRef, options: LogStreamOptions): AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>
  portForward(pod: PodRef, port: number, options?: { signal?: AbortSignal }): Promise<ByteStream>
}

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
