import { type FileHandle, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  CorralError,
  type ProcessExitRecord,
  type ProcessRecord,
  type SignalName,
  type TerminalSize,
} from '@corral/protocol'
import type { IPty } from '@lydell/node-pty'
import { ChangeNotice } from './change-notice.js'
import type { DurablePorts } from './durable-process.js'
import { exitRecord } from './exit-status.js'
import { type OutputCursor, OutputLog } from './output-log.js'
import type { ProcessHandle } from './process-handle.js'
import { readBeforeDestroy } from './read-before-destroy.js'
import { type ProcessMeta, writeFinal } from './record-files.js'
import { killGroup } from './signals.js'

/** Output the disk has not taken yet; above it the terminal is paused. */
const maxPendingBytes = 1024 * 1024

/**
 * A process in a terminal. The daemon holds the terminal, so unlike other processes it ends with the daemon; its record
 * and output stay. Everything it writes is stdout.
 */
export class TerminalProcess implements ProcessHandle {
  readonly changed: ChangeNotice = new ChangeNotice()
  readonly #directory: string
  readonly #meta: ProcessMeta
  readonly #output: OutputLog
  readonly #file: FileHandle
  readonly #pty: IPty
  readonly #ports: DurablePorts
  #size: TerminalSize
  #pendingBytes = 0
  #writes: Promise<void> = Promise.resolve()
  #exit: ProcessExitRecord | undefined

  private constructor(
    directory: string,
    meta: ProcessMeta & { tty: TerminalSize },
    output: OutputLog,
    file: FileHandle,
    pty: IPty,
    ports: DurablePorts,
  ) {
    this.#directory = directory
    this.#meta = meta
    this.#size = meta.tty
    this.#output = output
    this.#file = file
    this.#pty = pty
    this.#ports = ports
    // Typed as text, but with `encoding: null` it hands out bytes.
    pty.onData((data: string | Uint8Array) => this.#write(typeof data === 'string' ? Buffer.from(data) : data))
    readBeforeDestroy(pty, (data) => this.#write(data))
    pty.onExit(({ exitCode, signal }) => {
      this.#writes = this.#writes.then(() => this.#finish(signal ? 128 + signal : exitCode))
    })
  }

  /** Starts the command in a new terminal; `TerminalUnavailable` where the terminal library is not installed. */
  static async start(
    directory: string,
    meta: ProcessMeta & { tty: TerminalSize },
    env: NodeJS.ProcessEnv,
    ports: DurablePorts,
  ): Promise<TerminalProcess> {
    const { spawn } = await loadTerminalLibrary()
    for (const stream of ['stdout', 'stderr']) await writeFile(join(directory, stream), '', { mode: 0o600 })
    const output = await OutputLog.open(directory)
    const file = await open(join(directory, 'stdout'), 'a')
    const [program, ...args] = meta.argv
    const pty = spawn(program!, args, {
      name: 'xterm-256color',
      cols: meta.tty.columns,
      rows: meta.tty.rows,
      cwd: meta.cwd,
      env: { TERM: 'xterm-256color', ...env },
      encoding: null,
    })
    return new TerminalProcess(directory, meta, output, file, pty, ports)
  }

  record(): ProcessRecord {
    return {
      ...this.#meta,
      tty: this.#size,
      pid: this.#pty.pid,
      output_bytes: this.#output.length,
      ...(this.#exit ? { exit: this.#exit } : {}),
    }
  }

  cursor(offset: number): Promise<OutputCursor> {
    return this.#output.cursor(offset)
  }

  async writeStdin(chunks: AsyncIterable<Uint8Array>, eof: boolean): Promise<void> {
    this.#requireRunning()
    for await (const chunk of chunks) {
      this.#requireRunning()
      // Typed as text; the library passes bytes on unchanged.
      this.#pty.write(Buffer.from(chunk) as unknown as string)
    }
    // A terminal has no half-close: end of file is a character.
    if (eof) this.#pty.write('\x04')
  }

  kill(signal: SignalName, group: boolean): void {
    this.#requireRunning()
    if (!killGroup(this.#pty.pid, signal, group)) {
      throw new CorralError('ProcessExited', `process "${this.#meta.id}" has ended`)
    }
  }

  resize(size: TerminalSize): void {
    this.#requireRunning()
    this.#pty.resize(size.columns, size.rows)
    this.#size = size
  }

  async detach(): Promise<void> {
    if (!this.#exit) killGroup(this.#pty.pid, 'SIGKILL', true)
    while (!this.#exit) await this.changed.wait(100)
    await this.#output.close()
    this.changed.notify()
  }

  #write(data: Uint8Array): void {
    this.#pendingBytes += data.length
    if (this.#pendingBytes > maxPendingBytes) this.#pty.pause()
    this.#writes = this.#writes.then(async () => {
      try {
        await this.#file.appendFile(data)
        await this.#output.observe()
      } catch (error) {
        this.#ports.log.error('terminal output lost', { id: this.#meta.id, error: String(error) })
      }
      this.#pendingBytes -= data.length
      if (this.#pendingBytes === 0) this.#pty.resume()
      this.changed.notify()
    })
  }

  async #finish(status: number): Promise<void> {
    const exit = exitRecord(status & 0xff, this.#ports.clock.now())
    try {
      await this.#file.close()
      await writeFinal(this.#directory, { exit, output_bytes: this.#output.length })
    } catch (error) {
      this.#ports.log.error('process end not recorded', { id: this.#meta.id, error: String(error) })
    }
    this.#exit = exit
    this.#ports.log.info('process ended', { id: this.#meta.id, exitCode: exit.exit_code })
    this.changed.notify()
  }

  #requireRunning(): void {
    if (this.#exit) throw new CorralError('ProcessExited', `process "${this.#meta.id}" has ended`)
  }
}

async function loadTerminalLibrary(): Promise<typeof import('@lydell/node-pty')> {
  try {
    return await import('@lydell/node-pty')
  } catch (cause) {
    throw new CorralError('TerminalUnavailable', 'terminals are not available in this sandbox', { cause })
  }
}
