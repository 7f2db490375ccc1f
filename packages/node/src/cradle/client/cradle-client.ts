import { existsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { BrakeReason, NetworkReport, OomReport } from '../../isolation/isolation.js'
import { IsolationError, isolationError } from '../../isolation/isolation-error.js'
import { LineReader } from '../protocol/line-reader.js'
import { type CradleMessage, type CradleRequest, cradleSocketName, type Hello } from '../protocol/messages.js'
import { socketPath } from './socket-path.js'

const helloTimeoutMs = 5_000

/**
 * How long the cradle may take to answer. What it does has deadlines of its own that are shorter; these end the wait for
 * a cradle that hangs.
 */
const answerTimeoutMs: Readonly<Record<CradleRequest['op'], number>> = {
  preparePod: 60_000,
  setNetwork: 60_000,
  attachSnapshot: 120_000,
  setLimits: 20_000,
  launch: 60_000,
  list: 20_000,
  networkReports: 20_000,
  oomReports: 20_000,
  kill: 30_000,
  halt: 20_000,
  // Said on the way down, which does not wait for a cradle that hangs.
  keep: 2_000,
  endWithMain: 2_000,
  acknowledge: 20_000,
  releasePod: 60_000,
  shutdown: 20_000,
  attach: 20_000,
}

export interface CradleClientEvents {
  onExit(event: Extract<CradleMessage, { event: 'exit' }>): void
  onNetwork(report: NetworkReport): void
  onOom(report: OomReport): void
  onBraked(podUid: string, reason: BrakeReason): void
  /** The connection is gone, and with it the cradle or our right to it. */
  onLost(): void
}

/** A main's connection to the cradle. After it is lost every call rejects with `CradleUnavailable`. */
export class CradleClient {
  #nextId = 1
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #isClosed = false

  private constructor(
    private readonly socket: Socket,
    readonly hello: Hello,
    private readonly events: CradleClientEvents,
  ) {}

  /** Connects to a cradle that runs; undefined when none does. */
  static async connect(cradleDirectory: string, events: CradleClientEvents): Promise<CradleClient | undefined> {
    const socket = await open(cradleDirectory)
    if (!socket) return undefined
    const lines = new LineReader()
    return await new Promise<CradleClient | undefined>((resolve) => {
      let client: CradleClient | undefined
      const timer = setTimeout(() => socket.destroy(), helloTimeoutMs)
      socket.on('data', (chunk: Buffer) => {
        for (const line of lines.take(chunk)) {
          const message = JSON.parse(line) as CradleMessage
          if (client) client.#receive(message)
          else if ('hello' in message) {
            clearTimeout(timer)
            client = new CradleClient(socket, message.hello, events)
            resolve(client)
          }
        }
      })
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        clearTimeout(timer)
        resolve(undefined)
        if (client) client.#lose()
      })
    })
  }

  /** Rejects with `CradleUnavailable` when no answer has come within `timeoutMs`; one that comes later is dropped. */
  call<T>(request: CradleRequest, timeoutMs: number = answerTimeoutMs[request.op]): Promise<T> {
    if (this.#isClosed) return Promise.reject(unavailable())
    const id = this.#nextId++
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        if (!this.#waiting.delete(id)) return
        const within = `within ${timeoutMs / 1000} s`
        reject(new IsolationError('CradleUnavailable', `the cradle did not answer "${request.op}" ${within}`))
      }, timeoutMs)
      this.#waiting.set(id, {
        resolve: (value) => {
          clearTimeout(timer)
          resolve(value as T)
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      })
      this.socket.write(`${JSON.stringify({ id, ...request })}\n`)
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Lets go of the cradle; it keeps its cells. */
  close(): void {
    this.#isClosed = true
    this.socket.end()
    this.socket.unref()
  }

  #receive(message: CradleMessage): void {
    if ('event' in message) {
      if (message.event === 'exit') this.events.onExit(message)
      else if (message.event === 'network') this.events.onNetwork(message.report)
      else if (message.event === 'oom') this.events.onOom(message.report)
      else if (message.event === 'braked') this.events.onBraked(message.podUid, message.reason)
      return
    }
    if (!('id' in message)) return
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if ('error' in message) waiting?.reject(isolationError(message.error.code, message.error.message))
    else waiting?.resolve(message.result)
  }

  #lose(): void {
    const wasClosed = this.#isClosed
    this.#isClosed = true
    for (const { reject } of this.#waiting.values()) reject(unavailable())
    this.#waiting.clear()
    if (!wasClosed) this.events.onLost()
  }
}

/** A connection of its own to the cradle, greeting already read, for an attachment. */
export async function openAttachment(
  cradleDirectory: string,
  request: Extract<CradleRequest, { op: 'attach' }>,
): Promise<Socket> {
  const socket = await open(cradleDirectory)
  if (!socket) throw unavailable()
  return await new Promise<Socket>((resolve, reject) => {
    const lines = new LineReader()
    const lost = (): void => reject(unavailable())
    const read = (chunk: Buffer): void => {
      for (const _hello of lines.take(chunk)) {
        socket.off('data', read).off('close', lost)
        socket.pause()
        socket.write(`${JSON.stringify(request)}\n`)
        resolve(socket)
        return
      }
    }
    socket.on('data', read).on('close', lost)
  })
}

function open(cradleDirectory: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    let path: string
    try {
      path = socketPath(cradleDirectory, cradleSocketName)
    } catch {
      // The directory does not exist, so neither does a cradle.
      resolve(undefined)
      return
    }
    // Told without a turn of the event loop: at the start of the platform its other parts would go first.
    if (!existsSync(path)) {
      resolve(undefined)
      return
    }
    const socket = connect(path)
    const absent = (): void => resolve(undefined)
    socket.once('error', absent)
    socket.once('connect', () => {
      socket.off('error', absent)
      resolve(socket)
    })
  })
}

function unavailable(): IsolationError {
  return new IsolationError('CradleUnavailable', 'the cradle is gone')
}
