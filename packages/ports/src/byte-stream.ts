/**
 * A two-way stream of bytes. Iterating reads until the other side half-closes; `write` resolves when the chunk has been
 * taken (back-pressure); `end` half-closes our side; `destroy` drops both sides at once. After a failure iteration throws.
 */
export interface ByteStream extends AsyncIterable<Uint8Array> {
  write(chunk: Uint8Array): Promise<void>
  /** Several chunks as one, where the stream can take them without a copy before its own. */
  writeAll?(chunks: readonly Uint8Array[]): Promise<void>
  end(): void
  destroy(error?: Error): void
  /** Whether an open stream keeps a Node process alive; absent where it never does or cannot be told. */
  ref?(): void
  unref?(): void
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
