import type { ByteStream } from '@corral/ports'
import {
  bootHeader,
  CorralError,
  encodeLineMessage,
  type FrameSource,
  isErrorCode,
  type LineMessage,
  OutputDecoder,
  type OutputFrame,
  processLineHost,
  type StartProcessRequest,
} from '@corral/protocol'

/** Opens one connection to the daemon's port. */
type Dial = (signal?: AbortSignal) => Promise<ByteStream>

export interface ProcessLinesOptions {
  readonly dial: Dial
  /** For a daemon that asks for tokens. */
  readonly authorization?: (() => Promise<string>) | undefined
  /** Headers of the trace a command belongs to. */
  readonly traceHeaders?: (() => Record<string, string>) | undefined
}

/** Kept for the next command when the last one has ended. */
const maxIdle = 4
/** Past this many at once HTTP takes the rest, which queues. */
const maxLines = 64
const maxHeadBytes = 8_192
const handshakeTimeoutMs = 30_000

/**
 * Connections to our daemon that carry one command after the other without HTTP around each: a fraction of the work on either
 * side and in the tunnel between them. A line that breaks says so; the command is then found again over HTTP, by its id.
 */
export class ProcessLines {
  readonly #options: ProcessLinesOptions
  readonly #idle: ProcessLine[] = []
  readonly #open = new Set<ProcessLine>()
  #isClosed = false

  constructor(options: ProcessLinesOptions) {
    this.#options = options
  }

  /**
   * Opens a line ahead of its first command. Answers which life of our daemon is there; undefined where something else
   * answers, or a daemon that knows no lines. Rejects where no process listens on the port.
   */
  async probe(signal?: AbortSignal): Promise<string | undefined> {
    const line = await this.#connect(signal)
    if (!line) return undefined
    this.#release(line)
    return line.boot
  }

  /**
   * Starts a command, or joins the one that has this id. Undefined where no line can be had: HTTP is the other way. `onSend` is
   * told when there is one: until then nothing of the command was sent.
   */
  async start(
    command: { id: string; request: StartProcessRequest; boot?: string | undefined; onSend: () => void },
    signal: AbortSignal,
  ): Promise<(FrameSource & { confirm(offset: number): void }) | undefined> {
    const { onSend, ...start } = command
    const line = this.#idle.pop() ?? (this.#open.size < maxLines ? await this.#connect(signal) : undefined)
    if (!line) return undefined
    const trace = this.#options.traceHeaders?.() ?? {}
    const message = Object.keys(trace).length > 0 ? { ...start, trace } : start
    onSend()
    const source = line.run(message, () => this.#release(line))
    try {
      // The first frame says that it runs, or why it does not.
      await source.begun
    } catch (error) {
      source.cancel()
      throw error
    }
    return source
  }

  close(): void {
    this.#isClosed = true
    for (const line of this.#open) line.destroy()
  }

  async #connect(signal?: AbortSignal): Promise<ProcessLine | undefined> {
    const line = await ProcessLine.open(this.#options, signal)
    if (!line) return undefined
    this.#open.add(line)
    void line.ended.then(() => {
      this.#open.delete(line)
      const index = this.#idle.indexOf(line)
      if (index >= 0) this.#idle.splice(index, 1)
    })
    return line
  }

  #release(line: ProcessLine): void {
    if (this.#isClosed || this.#idle.length >= maxIdle) line.destroy()
    else {
      line.rest()
      this.#idle.push(line)
    }
  }
}

class ProcessLine {
  readonly boot: string
  readonly ended: Promise<void>
  readonly #stream: ByteStream
  readonly #chunks: AsyncIterator<Uint8Array>
  #next: Promise<IteratorResult<Uint8Array>> | undefined
  #end: () => void = () => {}
  #isResting = false

  private constructor(stream: ByteStream, chunks: AsyncIterator<Uint8Array>, boot: string) {
    this.#stream = stream
    this.#chunks = chunks
    this.boot = boot
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  static async open(options: ProcessLinesOptions, signal?: AbortSignal): Promise<ProcessLine | undefined> {
    const stream = await options.dial(signal)
    const timer = setTimeout(() => stream.destroy(new Error('the sandbox did not answer in time')), handshakeTimeoutMs)
    try {
      const authority = `${processLineHost}:8888`
      const token = options.authorization ? `authorization: ${await options.authorization()}\r\n` : ''
      const head = `CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${token}\r\n`
      const chunks = stream[Symbol.asyncIterator]()
      await stream.write(new TextEncoder().encode(head))
      const answer = await readHead(chunks)
      const boot = new RegExp(`^${bootHeader}: *(\\S+)`, 'im').exec(answer)?.[1]
      if (/^HTTP\/1\.1 200 /.test(answer) && boot) return new ProcessLine(stream, chunks, boot)
      if (/^HTTP\/1\.1 401 /.test(answer)) {
        throw new CorralError('Unauthorized', 'the daemon refuses the token it was given')
      }
      stream.destroy()
      return undefined
    } catch (error) {
      stream.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** One command. `onFree` is told at its end, when the line can take another. */
  run(
    start: Omit<LineMessage & { type: 'start' }, 'type'>,
    onFree: () => void,
  ): FrameSource & { begun: Promise<void>; confirm(offset: number): void } {
    this.#isResting = false
    this.#stream.ref?.()
    let isOver = false
    const sent = this.#stream.write(encodeLineMessage({ type: 'start', ...start }))
    // A connection that takes no command brings no frame either: ending it tells the reader of the output.
    sent.catch(() => this.destroy())
    const frames = this.#frames(() => {
      isOver = true
      onFree()
    })
    const first = frames.next()
    first.catch(() => {}) // reported by `begun` and by reading; unhandled here it would end the process
    return {
      begun: first.then(({ value, done }) => {
        if (done) throw new CorralError('ConnectionLost', 'the line to the sandbox broke')
        if (value.type === 'failure') throw failureOf(value)
      }),
      frames: withFirst(first, frames),
      confirm: (offset) => {
        if (!isOver) this.#stream.write(encodeLineMessage({ type: 'confirm', offset })).catch(() => {})
      },
      cancel: () => {
        if (!isOver) this.destroy()
      },
    }
  }

  /** Reads while no command uses it, so that its end is noticed, and does not keep the program running. */
  rest(): void {
    this.#isResting = true
    this.#stream.unref?.()
    this.#read().then(
      ({ done }) => {
        // Nothing is to come between commands.
        if (this.#isResting || done) this.destroy()
      },
      () => this.destroy(),
    )
  }

  destroy(): void {
    this.#stream.destroy()
    this.#end()
  }

  #read(): Promise<IteratorResult<Uint8Array>> {
    this.#next ??= this.#chunks.next()
    return this.#next
  }

  async *#frames(onOver: () => void): AsyncGenerator<OutputFrame> {
    const decoder = new OutputDecoder()
    let isOver = false
    try {
      for (;;) {
        const { done, value } = await this.#read()
        this.#next = undefined
        if (done) return
        for (const frame of decoder.push(value)) {
          if (frame.type === 'exit' || frame.type === 'failure') {
            isOver = true
            onOver()
          }
          yield frame
        }
        if (isOver) return
      }
    } finally {
      if (!isOver) this.destroy()
    }
  }
}

function failureOf({ code, message }: OutputFrame & { type: 'failure' }): CorralError {
  return new CorralError(isErrorCode(code) ? code : 'InternalError', message)
}

async function* withFirst(
  first: Promise<IteratorResult<OutputFrame>>,
  rest: AsyncGenerator<OutputFrame>,
): AsyncGenerator<OutputFrame> {
  try {
    const { done, value } = await first
    if (done) return
    yield value
    yield* rest
  } finally {
    await rest.return(undefined)
  }
}

async function readHead(chunks: AsyncIterator<Uint8Array>): Promise<string> {
  let head = ''
  while (!head.includes('\r\n\r\n')) {
    const { done, value } = await chunks.next()
    if (done) throw new CorralError('ConnectionLost', 'the sandbox closed the connection')
    head += Buffer.from(value).toString('latin1')
    if (head.length > maxHeadBytes) throw new CorralError('ProtocolViolation', 'the daemon answered without an end')
  }
  return head
}
