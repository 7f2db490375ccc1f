import { randomUUID } from 'node:crypto'
import type { ProcessRecord, SignalName } from '@corral/protocol'
import type { ProcessSpec } from './runtime/sandbox-runtime.js'
import { SandboxError, translated } from './sandbox-error.js'
import type { SandboxLink } from './sandbox-link.js'
import { type ProcessLimits, SandboxProcess } from './sandbox-process.js'

/** A process that goes on whatever becomes of its clients. */
export interface BackgroundProcess {
  readonly id: string
  readonly pid: number | undefined
}

/** Processes of a sandbox that outlive their clients: started once under an id, attached to as often as one likes. */
export class SandboxProcesses {
  readonly #link: SandboxLink

  constructor(link: SandboxLink) {
    this.#link = link
  }

  /** Every process the sandbox knows, running or ended. */
  list(options: { signal?: AbortSignal } = {}): Promise<ProcessRecord[]> {
    return translated(async () => {
      const runtime = await this.#link.corral('a list of processes', options.signal)
      return runtime.listProcesses(options)
    }, options.signal)
  }

  /** Starts a process, or finds the one that has this id. Safe to repeat. */
  start(spec: ProcessSpec & { id?: string | undefined; signal?: AbortSignal | undefined }): Promise<BackgroundProcess> {
    const { id = `background-${randomUUID()}`, signal, ...rest } = spec
    return translated(async () => {
      if (rest.pty && rest.stdin instanceof Uint8Array)
        throw new SandboxError('Invalid', 'what is for a terminal is written to it with write() once it runs')
      const runtime = await this.#link.corral('a background process', signal)
      const record = await runtime.startDurable(id, rest)
      return { id, pid: record.pid }
    }, signal)
  }

  /** Follows a process from an offset on: nothing before it, everything after it, once. Detaching ends nothing. */
  attach(id: string, options: ProcessLimits & { fromOffset?: number } = {}): SandboxProcess {
    const { fromOffset = 0, ...limits } = options
    const opening = translated(async () => {
      const runtime = await this.#link.corral('attaching to a process', options.signal)
      return runtime.attach(id, fromOffset)
    }, options.signal)
    opening.catch(() => {})
    return new SandboxProcess([id], opening, limits)
  }

  /** What there is of the output from an offset on, both streams together. */
  read(id: string, options: { fromOffset?: number; signal?: AbortSignal } = {}): Promise<Uint8Array> {
    const { fromOffset = 0, signal } = options
    return translated(async () => {
      const runtime = await this.#link.corral('the output of a process', signal)
      const chunks: Uint8Array[] = []
      for await (const event of runtime.readOutput(id, fromOffset, { signal })) {
        if (event.type === 'data') chunks.push(event.data)
      }
      return new Uint8Array(Buffer.concat(chunks))
    }, signal)
  }

  /** To the standard input of a process that was started with one, or in a terminal. */
  write(id: string, data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    return translated(async () => (await this.#link.corral('standard input')).attach(id, 0).write(bytes))
  }

  kill(id: string, signal: SignalName = 'SIGTERM'): Promise<void> {
    return translated(async () => (await this.#link.corral('a signal')).attach(id, 0).kill(signal))
  }
}
