import { createServer, type Server, type Socket } from 'node:net'
import type { BrakeReason, CellExit, NetworkReport, OomReport } from '../../isolation/isolation.js'
import { IsolationError } from '../../isolation/isolation-error.js'
import { encodeExit, encodeFrame, Frame, FrameReader } from '../protocol/frames.js'
import { LineReader } from '../protocol/line-reader.js'
import type { CellKey, CradleMessage, CradleRequest, Hello } from '../protocol/messages.js'
import type { PodHost } from './pod-host.js'

const maxAttachBacklogBytes = 4 * 1024 * 1024

export interface CradleServerPorts {
  hello: Hello
  pods: PodHost
  /** Called when the number of mains connected becomes zero or leaves zero. */
  onMainsChanged(count: number): void
  /** A main asked that pods be kept until this time should it go away. */
  onKeep(untilMs: number): void
  /** A main asked that nothing be kept should it go away. */
  onEndWithMain(): void
  /** A main asked for the end. */
  onShutdown(): void
}

/** Serves mains on a unix socket: requests and replies as lines of JSON, exits as events, attachments as frames. */
export class CradleServer {
  readonly #server: Server
  /** Connections of mains, with the events that wait for the first request of each. */
  readonly #mains = new Map<Socket, { waiting: CradleMessage[] | undefined }>()
  readonly #sockets = new Set<Socket>()

  constructor(private readonly ports: CradleServerPorts) {
    this.#server = createServer((socket) => this.#serve(socket))
  }

  /** Resolves once it accepts connections. The path may be relative, which keeps it short. */
  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(path, resolve)
    })
  }

  announceExit(cell: CellKey, exit: CellExit): void {
    const { podUid, container, attempt } = cell
    this.#tell({ event: 'exit', cell: { podUid, container, attempt }, exit })
  }

  announceNetwork(report: NetworkReport): void {
    this.#tell({ event: 'network', report })
  }

  announceBraked(podUid: string, reason: BrakeReason): void {
    this.#tell({ event: 'braked', podUid, reason })
  }

  announceOom(report: OomReport): void {
    this.#tell({ event: 'oom', report })
  }

  /**
   * An attachment looks like a main until it says what it is: an event written before that would be read as a frame, and
   * the attachment would end. So events wait until a connection has asked for something.
   */
  #tell(event: CradleMessage): void {
    for (const [socket, main] of this.#mains) {
      if (main.waiting) main.waiting.push(event)
      else send(socket, event)
    }
  }

  #release(socket: Socket): void {
    const main = this.#mains.get(socket)
    for (const event of main?.waiting ?? []) send(socket, event)
    if (main) main.waiting = undefined
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.end()
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    this.#mains.set(socket, { waiting: [] })
    this.ports.onMainsChanged(this.#mains.size)
    send(socket, { hello: this.ports.hello })
    const lines = new LineReader()
    const leave = (): void => {
      this.#sockets.delete(socket)
      if (this.#mains.delete(socket)) this.ports.onMainsChanged(this.#mains.size)
    }
    const read = (chunk: Buffer): void => {
      try {
        for (const line of lines.take(chunk)) {
          const request = JSON.parse(line) as CradleRequest & { id: number }
          if (request.op === 'attach') {
            leave()
            this.#sockets.add(socket)
            socket.off('data', read)
            this.#attach(socket, request.cell, request.stdin, lines.rest())
            return
          }
          this.#release(socket)
          void this.#answer(socket, request)
        }
      } catch {
        // A main of ours never sends this.
        socket.destroy()
      }
    }
    socket.on('data', read)
    socket.on('error', () => socket.destroy())
    socket.on('close', leave)
  }

  async #answer(socket: Socket, request: CradleRequest & { id: number }): Promise<void> {
    const { id } = request
    try {
      send(socket, { id, result: (await this.#perform(request)) ?? null })
    } catch (error) {
      const code = error instanceof IsolationError ? error.code : 'StartFailed'
      send(socket, { id, error: { code, message: error instanceof Error ? error.message : String(error) } })
    }
    if (request.op === 'shutdown') this.ports.onShutdown()
  }

  async #perform(request: CradleRequest): Promise<unknown> {
    const { pods } = this.ports
    switch (request.op) {
      case 'preparePod':
        return await pods.preparePod(request.pod)
      case 'setNetwork':
        return await pods.setNetwork(request.podUid, request.network)
      case 'attachSnapshot':
        await pods.attachSnapshot(request.podUid, request.snapshot)
        return {}
      case 'setLimits':
        return await pods.setLimits(request.podUid, request.limits)
      case 'launch':
        return await pods.launch(request.plan)
      case 'list':
        return pods.list()
      case 'networkReports':
        return await pods.networkReports()
      case 'oomReports':
        return pods.oomReports()
      case 'kill':
        return await pods.kill(request.cell)
      case 'halt':
        return await pods.halt(request.cell)
      case 'acknowledge':
        return pods.acknowledge(request.cell)
      case 'releasePod':
        return await pods.releasePod(request.podUid)
      case 'keep':
        return this.ports.onKeep(request.untilMs)
      case 'endWithMain':
        return this.ports.onEndWithMain()
      case 'shutdown':
        return await pods.releaseAll()
      case 'attach':
        throw new IsolationError('Invalid', 'attach needs a connection of its own')
    }
  }

  #attach(socket: Socket, key: CellKey, wantsStdin: boolean, early: Buffer): void {
    const run = this.ports.pods.find(key)
    if (!run) {
      socket.end(encodeFrame(Frame.error, 'NotRunning the container does not run'))
      return
    }
    const reader = new FrameReader()
    const watcher = {
      output: (stream: 'stdout' | 'stderr', chunk: Buffer): void => {
        // One slow reader must not stall the container or the others.
        if (socket.writableLength > maxAttachBacklogBytes) socket.destroy()
        else socket.write(encodeFrame(stream === 'stdout' ? Frame.stdout : Frame.stderr, chunk))
      },
      ended: (exit: CellExit): void => {
        socket.end(encodeExit(exit.exitCode, exit.signal ?? 0))
      },
    }
    const read = (chunk: Buffer): void => {
      try {
        for (const { type, payload } of reader.take(chunk)) {
          const isInput = type === Frame.stdin || type === Frame.eof
          if (type !== Frame.resize && !(isInput && wantsStdin)) continue
          if (run.send(encodeFrame(type, payload))) continue
          socket.pause()
          run.onceDrained(() => socket.resume())
        }
      } catch {
        socket.destroy()
      }
    }
    run.watchers.add(watcher)
    socket.on('close', () => run.watchers.delete(watcher))
    socket.write(encodeFrame(Frame.started, Buffer.alloc(4)))
    socket.on('data', read)
    if (early.length > 0) read(early)
  }
}

function send(socket: Socket, message: CradleMessage): void {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`)
}
