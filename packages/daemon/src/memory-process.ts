import { CorralError, type ProcessExitRecord, type ProcessRecord, type SignalName } from '@corral/protocol'
import { ChangeNotice } from './change-notice.js'
import { type CommandChild, startChild } from './command-child.js'
import type { DurablePorts } from './durable-process.js'
import { exitRecord, lostRecord } from './exit-status.js'
import { HeldOutput } from './held-output.js'
import type { OutputCursor } from './output-log.js'
import type { ProcessHandle } from './process-handle.js'
import type { ProcessUser } from './process-user.js'
import type { ProcessMeta } from './record-files.js'
import type { SpawnLanes } from './spawn-lanes.js'

/**
 * A process the daemon holds itself: started without wrapper and files, so a short command takes a few milliseconds. It
 * outlives every connection and ends with the daemon. Output is held until its reader confirms it; a process that is
 * ahead of its reader by a window waits in its pipe.
 */
export class MemoryProcess implements ProcessHandle {
  readonly changed: ChangeNotice = new ChangeNotice()
  readonly #meta: ProcessMeta
  readonly #child: CommandChild
  readonly #output: HeldOutput
  #exit: ProcessExitRecord | undefined
  #isStdinClosed: boolean

  private constructor(meta: ProcessMeta, child: CommandChild, ports: DurablePorts) {
    this.#meta = meta
    this.#child = child
    this.#isStdinClosed = meta.stdin === 'null'
    this.#output = new HeldOutput((isFull) => child.setPaused(isFull))
    // A reader of stdin that has gone is seen by the next write.
    child.stdin?.on('error', () => {
      this.#isStdinClosed = true
    })
    child.listen(
      (stream, data) => {
        this.#output.push(stream, data)
        this.changed.notify()
      },
      (end) => {
        const now = ports.clock.now()
        this.#exit = 'lost' in end ? lostRecord(end.lost, now) : exitRecord(end.status & 0xff, now)
        this.changed.notify()
      },
    )
  }

  /** Resolves once the command runs. `lanes` start one without input and as this user. */
  static async start(
    meta: ProcessMeta,
    env: NodeJS.ProcessEnv,
    {
      user,
      input,
      lanes,
    }: { user?: ProcessUser | undefined; input?: string | undefined; lanes?: SpawnLanes | undefined },
    ports: DurablePorts,
  ): Promise<MemoryProcess> {
    const { argv, cwd } = meta
    const stdin = meta.stdin === 'open' || input !== undefined ? 'pipe' : 'ignore'
    const isPlain = stdin === 'ignore' && !user
    const child =
      (isPlain ? await lanes?.start({ argv, cwd, env }) : undefined) ??
      (await startChild({ argv, cwd, env, user, stdin }))
    const self = new MemoryProcess(meta, child, ports)
    if (input !== undefined) {
      self.#isStdinClosed = true
      child.stdin?.end(Buffer.from(input, 'base64'))
    }
    return self
  }

  record(): ProcessRecord {
    return {
      ...this.#meta,
      pid: this.#child.pid,
      output_bytes: this.#output.length,
      ...(this.#exit ? { exit: this.#exit } : {}),
    }
  }

  async cursor(offset: number): Promise<Pick<OutputCursor, 'next' | 'close'>> {
    return this.#output.cursor(offset)
  }

  confirm(offset: number): void {
    this.#output.confirm(offset)
  }

  /** Bytes held for readers. */
  get heldBytes(): number {
    return this.#output.heldBytes
  }

  async writeStdin(chunks: AsyncIterable<Uint8Array>, eof: boolean, signal: AbortSignal): Promise<void> {
    this.#requireRunning()
    const { stdin } = this.#child
    if (!stdin || this.#isStdinClosed) {
      throw new CorralError('StdinClosed', `the standard input of process "${this.#meta.id}" is closed`)
    }
    for await (const chunk of chunks) {
      if (signal.aborted) return
      if (this.#isStdinClosed) {
        throw new CorralError('StdinClosed', `process "${this.#meta.id}" does not read its standard input any more`)
      }
      if (!stdin.write(chunk)) await drained(stdin, signal)
    }
    if (!eof) return
    this.#isStdinClosed = true
    stdin.end()
  }

  kill(signal: SignalName, group: boolean): void {
    this.#requireRunning()
    if (!this.#child.kill(signal, group)) {
      throw new CorralError('ProcessExited', `process "${this.#meta.id}" has ended`)
    }
  }

  resize(): void {
    throw new CorralError('NotATerminal', `process "${this.#meta.id}" has no terminal`)
  }

  /** The daemon goes, and with it the pipes: the process ends too. */
  async detach(): Promise<void> {
    if (!this.#exit) this.#child.kill('SIGKILL', true)
    this.changed.notify()
  }

  #requireRunning(): void {
    if (this.#exit) throw new CorralError('ProcessExited', `process "${this.#meta.id}" has ended`)
  }
}

/** Until the pipe takes more, is gone, or the sender has gone. */
function drained(stdin: NodeJS.WritableStream, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stdin.off('drain', done).off('close', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    stdin.on('drain', done).on('close', done)
    signal.addEventListener('abort', done, { once: true })
  })
}
