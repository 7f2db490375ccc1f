import { statSync } from 'node:fs'
import { connect } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { ByteStream, DuplexProcess } from '@corral/ports'
import type { Cell, CellExit } from '../../isolation/isolation.js'
import { IsolationError } from '../../isolation/isolation-error.js'
import { Frame } from '../protocol/frames.js'
import type { CellRecord, CradleRequest } from '../protocol/messages.js'
import { openAttachment } from './cradle-client.js'
import { socketByteStream } from './socket-byte-stream.js'
import { socketPath } from './socket-path.js'
import { askSupervisor, dialInCell, execInCell, processOver } from './supervisor-client.js'

export interface CradleCellPorts {
  cradleDirectory: string
  /** Ports of a pod without a network of its own may stand for unix sockets in its directory. */
  mapsPortsToSockets: boolean
  call(request: CradleRequest): Promise<unknown>
}

/** A cell of the cradle as its main sees it. Exec and dial go straight to the supervisor, past the cradle. */
export class CradleCell implements Cell {
  readonly exited: Promise<CellExit>
  #settle: (exit: CellExit) => void = () => {}
  readonly #socket: string

  constructor(
    private readonly record: CellRecord,
    private readonly ports: CradleCellPorts,
  ) {
    this.#socket = socketPath(join(ports.cradleDirectory, 's'), record.socket)
    this.exited = new Promise((resolve) => {
      this.#settle = resolve
    })
    if (record.exit) this.#settle(record.exit)
  }

  get podUid(): string {
    return this.record.podUid
  }
  get container(): string {
    return this.record.container
  }
  get attempt(): number {
    return this.record.attempt
  }
  get knownExit(): CellExit | undefined {
    return this.record.exit
  }
  get startedAt(): string {
    return this.record.startedAt
  }

  /** Called once, by the first part that learns of the exit. */
  settle(exit: CellExit): void {
    this.#settle(exit)
  }

  exec(options: Parameters<Cell['exec']>[0]): Promise<DuplexProcess> {
    return execInCell(this.#socket, options)
  }

  async attach(options: { stdin: boolean; tty: boolean; signal?: AbortSignal }): Promise<DuplexProcess> {
    const cell = { podUid: this.podUid, container: this.container, attempt: this.attempt }
    const stdin = options.stdin && this.record.stdin
    const socket = await openAttachment(this.ports.cradleDirectory, { op: 'attach', cell, stdin })
    const streams = { stdin, stdout: true, stderr: !this.record.tty }
    return await processOver(socket, { ...streams, ...(options.signal ? { signal: options.signal } : {}) })
  }

  async dial(port: number, options: { host?: string; signal?: AbortSignal } = {}): Promise<ByteStream> {
    const directory = join(this.record.directory, 'run')
    const path = join(directory, `${port}.sock`)
    if (this.ports.mapsPortsToSockets && statSync(path, { throwIfNoEntry: false })?.isSocket()) {
      return await dialSocket(directory, `${port}.sock`)
    }
    return await dialInCell(this.#socket, port, options)
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    await askSupervisor(this.#socket, Frame.signal, String(constants.signals[signal]))
  }

  halt(): Promise<void> {
    return this.#tell('halt')
  }

  kill(): Promise<void> {
    return this.#tell('kill')
  }

  async #tell(op: 'halt' | 'kill'): Promise<void> {
    const cell = { podUid: this.podUid, container: this.container, attempt: this.attempt }
    await this.ports.call({ op, cell })
  }
}

function dialSocket(directory: string, name: string): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: socketPath(directory, name), allowHalfOpen: true })
    const fail = (cause: Error): void => {
      reject(new IsolationError('ConnectionRefused', `nothing listens on ${name}`, { cause }))
    }
    socket.once('error', fail)
    socket.once('connect', () => {
      socket.off('error', fail)
      resolve(socketByteStream(socket))
    })
  })
}
