import type { SignalName, TerminalSize } from '@corral/protocol'
import { OutputChannel, ProcessOutput } from './process-output.js'
import type { ProcessEvent, RuntimeProcess } from './runtime/sandbox-runtime.js'
import { SandboxError, toSandboxError } from './sandbox-error.js'
import { timeLimit } from './time-limit.js'

export interface ProcessResult {
  readonly exitCode: number
  /** The signal that ended it, where one did. */
  readonly signal?: number | undefined
  /** As text: the output that was not read as a stream. */
  readonly stdout: string
  readonly stderr: string
}

/** One piece of output, in the order in which it was written. */
export interface OutputPiece {
  readonly stream: 'stdout' | 'stderr'
  readonly data: Uint8Array
  /** Where it begins in the whole output: what `attach` goes on from. */
  readonly offset: number
}

export interface ProcessLimits {
  readonly timeoutMs?: number | undefined
  readonly maxOutputBytes?: number | undefined
  readonly signal?: AbortSignal | undefined
}

const defaultMaxOutputBytes = 10 * 1024 * 1024
/** How long a caller waits for the end of a command that was told to end: a sandbox that cannot be reached may never tell. */
const endWithinMs = 1_000
/** A kill that does not get through is sent again, with pauses of up to five seconds. */
const killAttempts = 12

/**
 * A command in a sandbox. Await it for its result, iterate it for its output, or read `stdout` and `stderr` apart. An exit
 * code other than 0 is a result; `ok()` makes it an error. A command that is far ahead of its reader waits.
 */
export class SandboxProcess implements PromiseLike<ProcessResult>, AsyncIterable<OutputPiece> {
  readonly stdout: ProcessOutput
  readonly stderr: ProcessOutput
  #onRoom: (() => void) | undefined
  readonly #tellRoom = () => this.#onRoom?.()
  readonly #channels = { stdout: new OutputChannel(this.#tellRoom), stderr: new OutputChannel(this.#tellRoom) }
  readonly #pieces = new OutputChannel<OutputPiece>(this.#tellRoom, (piece) => piece.data.length)
  readonly #started: Promise<RuntimeProcess>
  readonly #ended: Promise<{ exitCode: number; signal?: number | undefined }>
  readonly #limits: ProcessLimits
  readonly #limitMs: number | undefined
  #isIterated = false
  readonly #argv: readonly string[]
  #failure: SandboxError | undefined
  #giveUp: (failure: SandboxError) => void = () => {}
  #giveUpTimer: NodeJS.Timeout | undefined
  #result: Promise<ProcessResult> | undefined
  #offset = 0

  constructor(argv: readonly string[], started: Promise<RuntimeProcess>, limits: ProcessLimits) {
    this.#argv = argv
    this.#started = started
    this.#limits = limits
    this.#limitMs = timeLimit(limits.timeoutMs)
    this.stdout = new ProcessOutput(this.#channels.stdout)
    this.stderr = new ProcessOutput(this.#channels.stderr)
    this.#ended = this.#run()
    // `wait`, iteration and the streams throw it. Without this a command that the caller never awaits ends the program.
    this.#ended.catch(() => {})
  }

  /** Its name for `processes.attach`; undefined where the runtime has none. */
  get id(): Promise<string | undefined> {
    return this.#started.then(({ id }) => id)
  }

  /** Of the output handed out so far. */
  get offset(): number {
    return this.#offset
  }

  /** Settles when the command ends. Output that is not being read is dropped. */
  get exitCode(): Promise<number> {
    this.#drain()
    return this.#ended.then(({ exitCode }) => exitCode)
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting the command is the point.
  then<A = ProcessResult, B = never>(
    onFulfilled?: ((result: ProcessResult) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#result ??= this.#collect()
    return this.#result.then(onFulfilled, onRejected)
  }

  /** As of a promise, for callers that chain. */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<ProcessResult | B> {
    return this.then(undefined, onRejected)
  }

  /** As of a promise. */
  finally(onFinally?: (() => void) | null): Promise<ProcessResult> {
    return this.then().finally(onFinally)
  }

  /** The result, or `CommandFailed` where the exit code is not 0. */
  async ok(): Promise<ProcessResult> {
    const result: ProcessResult = await this
    if (result.exitCode === 0) return result
    const said = result.stderr.trim().slice(-2000)
    throw new SandboxError(
      'CommandFailed',
      `"${this.#argv.join(' ').slice(0, 200)}" ended with ${result.exitCode}${said ? `: ${said}` : ''}`,
      { details: { exitCode: result.exitCode, stdout: result.stdout.slice(-2000), stderr: said } },
    )
  }

  /** Output of both streams as it comes; ends with the command, throws where its end cannot be learned. */
  async *[Symbol.asyncIterator](): AsyncIterator<OutputPiece> {
    if (this.#isIterated) throw new SandboxError('Invalid', 'the output of a command can be iterated once')
    this.#isIterated = true
    this.#pieces.want()
    this.#channels.stdout.drain()
    this.#channels.stderr.drain()
    yield* this.#pieces
    await this.#ended
  }

  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    await this.#call((process) => process.write(bytes))
  }

  /** Closes standard input. One that is closed, or whose command has ended, is done. */
  end(): Promise<void> {
    return this.#unlessOver((process) => process.end())
  }

  /** To everything the command has started in its group. One that has ended already is done. */
  kill(signal: SignalName = 'SIGTERM'): Promise<void> {
    return this.#unlessOver((process) => process.kill(signal))
  }

  resize(size: TerminalSize): Promise<void> {
    return this.#call((process) => process.resize(size))
  }

  async #unlessOver(call: (process: RuntimeProcess) => Promise<void>): Promise<void> {
    try {
      await this.#call(call)
    } catch (error) {
      const isOver = error instanceof SandboxError && (error.code === 'ProcessExited' || error.code === 'StdinClosed')
      if (!isOver) throw error
    }
  }

  async #call(call: (process: RuntimeProcess) => Promise<void>): Promise<void> {
    try {
      await call(await this.#started)
    } catch (error) {
      throw toSandboxError(error)
    }
  }

  async #run(): Promise<{ exitCode: number; signal?: number | undefined }> {
    const { signal } = this.#limits
    const onAbort = () => this.#stop('Aborted', 'the call was aborted')
    const onTime = () => this.#stop('Timeout', `the command did not end within ${(this.#limitMs ?? 0) / 1000} s`)
    const timer = this.#limitMs === undefined ? undefined : setTimeout(onTime, this.#limitMs)
    const givenUp = new Promise<never>((_, reject) => {
      this.#giveUp = reject
    })
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) onAbort()
    try {
      const exit = await Promise.race([this.#started.then((process) => this.#pump(process)), givenUp])
      if (this.#failure) throw this.#failure
      this.#finish()
      return exit
    } catch (error) {
      const failure = error instanceof Unreached ? error : (this.#failure ?? toSandboxError(error, signal))
      this.#finish(failure)
      throw failure
    } finally {
      clearTimeout(timer)
      clearTimeout(this.#giveUpTimer)
      signal?.removeEventListener('abort', onAbort)
    }
  }

  async #pump(process: RuntimeProcess): Promise<{ exitCode: number; signal?: number | undefined }> {
    for await (const event of process.events) {
      if (event.type === 'exit') return { exitCode: event.exitCode, signal: event.signal }
      if (event.type === 'gap') {
        throw new SandboxError('Expired', `${event.bytes} bytes of output from ${event.offset} on are no longer kept`)
      }
      const waiting = this.#deliver(event)
      if (waiting) await waiting
    }
    throw new SandboxError('ConnectionLost', 'the output ended without the end of the command')
  }

  #deliver(event: ProcessEvent & { type: 'data' }): Promise<void> | undefined {
    this.#offset = event.offset + event.data.length
    this.#channels[event.stream].push(event.data)
    if (this.#pieces.isWanted || !this.#isWanted()) {
      this.#pieces.push({ stream: event.stream, data: event.data, offset: event.offset })
    }
    return this.#all().some((channel) => channel.isFull) ? this.#untilRoom() : undefined
  }

  /** Waits for readers. Those may come late, when everything is full: then what they do not read is dropped. */
  async #untilRoom(): Promise<void> {
    while (this.#all().some((channel) => channel.isFull)) {
      const isRead = this.#pieces.isWanted || this.#isWanted()
      if (isRead && this.#all().some((channel) => channel.isFull && !channel.isWanted)) {
        // Who reads both streams begins with one of them.
        await new Promise((resolve) => setImmediate(resolve))
        // Without this an unread stream, once full, stops the one that is read.
        for (const channel of this.#all()) if (channel.isFull && !channel.isWanted) channel.drain()
      } else
        await new Promise<void>((resolve) => {
          this.#onRoom = resolve
        })
    }
  }

  #all() {
    return [this.#pieces, this.#channels.stdout, this.#channels.stderr]
  }

  #isWanted(): boolean {
    return this.#channels.stdout.isWanted || this.#channels.stderr.isWanted
  }

  #drain(): void {
    for (const channel of this.#all()) channel.drain()
  }

  /** Ends the command for a reason of ours; the reason is what callers see. */
  #stop(code: 'Aborted' | 'Timeout' | 'OutputLimitExceeded', reason: string): void {
    if (this.#failure) return
    const failure = new SandboxError(code, `${reason}: the command was killed`)
    this.#failure = failure
    this.#finish(failure)
    this.#giveUpTimer = setTimeout(() => {
      this.#giveUp(new Unreached(code, `${reason}; the sandbox does not answer, so the command may still run`))
    }, endWithinMs)
    // Waits for the start where it is still on its way: a command that starts after all must not stay.
    this.#started.then(killForSure).catch(() => {})
  }

  #finish(failure?: SandboxError): void {
    for (const channel of this.#all()) channel.close(failure)
  }

  async #collect(): Promise<ProcessResult> {
    const { maxOutputBytes = defaultMaxOutputBytes } = this.#limits
    this.#pieces.drain()
    const texts = Promise.all(
      (['stdout', 'stderr'] as const).map(async (name) => {
        const channel = this.#channels[name]
        if (channel.isWanted || channel.isDrained) return channel.rest()
        const chunks: Uint8Array[] = []
        let bytes = 0
        channel.want()
        for await (const chunk of channel) {
          bytes += chunk.length
          if (bytes > maxOutputBytes) {
            this.#stop('OutputLimitExceeded', `the command wrote more than ${maxOutputBytes} bytes`)
            break
          }
          chunks.push(chunk)
        }
        return Buffer.concat(chunks).toString('utf8')
      }),
    )
    texts.catch(() => {})
    const exit = await this.#ended
    const [stdout = '', stderr = ''] = await texts
    return { ...exit, stdout, stderr }
  }
}

/** The command was told to end, and nothing tells whether it has. */
class Unreached extends SandboxError {}

/** Kills a command; again where the connection broke, so that it ends once the sandbox can be reached. */
async function killForSure(process: RuntimeProcess): Promise<void> {
  for (let attempt = 0; attempt < killAttempts; attempt += 1) {
    try {
      return await process.kill('SIGKILL')
    } catch (error) {
      if (toSandboxError(error).code !== 'ConnectionLost') return
      await new Promise((resolve) => setTimeout(resolve, Math.min(5_000, 100 * 2 ** attempt)).unref())
    }
  }
}
