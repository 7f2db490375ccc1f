import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { KubeError } from '@corral/resources'
import { ProxyTunnel } from './proxy-tunnel.js'

export interface Http2Options {
  origin: URL
  tls: ConnectionOptions
  /** Connections to spread requests over. */
  connections: number
  connectTimeoutMs: number
  /** An HTTP or SOCKS5 proxy to go through. */
  proxy?: URL | undefined
  keepAlive?: KeepAlive | undefined
}

/** A peer that vanished without a word is noticed by a ping that stays unanswered. */
export interface KeepAlive {
  everyMs: number
  /** Without an answer for so long the connection is given up. */
  timeoutMs: number
}

export interface Http2Request {
  method: string
  path: string
  headers: Readonly<Record<string, string | string[]>>
  body?: string
}

interface Slot {
  session?: ClientHttp2Session
  opening?: Promise<ClientHttp2Session | undefined>
  /** Requests under way. */
  load: number
}

/** Lists are megabytes: the protocol's own windows of 64 KB would stop their sender again and again. */
const streamWindowBytes = 4 * 1024 * 1024
const sessionWindowBytes = 16 * 1024 * 1024
const sessionMemoryMb = 256
const usualKeepAlive: KeepAlive = { everyMs: 30_000, timeoutMs: 15_000 }

/**
 * A fixed number of HTTP/2 connections, opened when first needed and replaced when lost. A request goes to the one with
 * the least to do and is sent once: whether a lost one may be repeated is for the caller to judge.
 */
export class Http2Connections {
  readonly #options: Http2Options
  readonly #slots: Slot[]
  /** Every connection that is not closed, also those that take no more requests since the server said goodbye. */
  readonly #sessions = new Set<ClientHttp2Session>()
  #isSpoken = true
  #closedBy: Error | undefined

  constructor(options: Http2Options) {
    this.#options = options
    this.#slots = Array.from({ length: Math.max(1, options.connections) }, () => ({ load: 0 }))
  }

  /** The request's stream, ended if it has no body; undefined where the server does not speak HTTP/2. */
  async request({ method, path, headers, body }: Http2Request): Promise<ClientHttp2Stream | undefined> {
    if (!this.#isSpoken) return undefined
    const slot = this.#slots.reduce((least, next) => (next.load < least.load ? next : least))
    slot.load += 1
    let stream: ClientHttp2Stream
    try {
      const session = await this.#session(slot)
      if (!session) {
        slot.load -= 1
        return undefined
      }
      stream = session.request({ ...headers, ':method': method, ':path': path }, { endStream: body === undefined })
    } catch (error) {
      slot.load -= 1
      throw error
    }
    stream.once('close', () => {
      slot.load -= 1
    })
    if (body !== undefined) stream.end(body)
    return stream
  }

  /** Lets what is under way finish; takes no further request. */
  retire(): void {
    this.#closedBy = new KubeError('ConnectionLost', 'these connections are retired')
    for (const session of this.#sessions) session.close()
  }

  /** Ends every connection; what is under way fails with the error. */
  destroy(error: Error): void {
    this.#closedBy = error
    for (const session of this.#sessions) session.destroy(error)
  }

  #session(slot: Slot): Promise<ClientHttp2Session | undefined> | ClientHttp2Session {
    if (this.#closedBy) throw this.#closedBy
    const { session } = slot
    if (session && !session.closed && !session.destroyed) return session
    slot.opening ??= this.#open(slot).finally(() => {
      delete slot.opening
    })
    return slot.opening
  }

  async #open(slot: Slot): Promise<ClientHttp2Session | undefined> {
    const { origin } = this.#options
    const socket = await connectSocket(this.#options)
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy()
      this.#isSpoken = false
      return undefined
    }
    const session = http2.connect(origin, {
      createConnection: () => socket,
      maxSessionMemory: sessionMemoryMb,
      settings: { enablePush: false, initialWindowSize: streamWindowBytes },
    })
    const forget = (): void => {
      if (slot.session === session) delete slot.session
    }
    session.once('connect', () => {
      // One that was destroyed on its way up says `connect` all the same, and would throw an uncaught exception.
      if (!session.destroyed) session.setLocalWindowSize(sessionWindowBytes)
    })
    session.on('error', forget) // its streams fail with it, and say so
    session.once('goaway', forget)
    session.once('close', () => {
      forget()
      this.#sessions.delete(session)
    })
    keepAlive(session, this.#options.keepAlive ?? usualKeepAlive)
    slot.session = session
    this.#sessions.add(session)
    if (this.#closedBy) session.destroy(this.#closedBy)
    return session
  }
}

function connectSocket({ origin, tls, connectTimeoutMs, proxy }: Http2Options): Promise<TLSSocket> {
  const host = origin.hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve, reject) => {
    const port = Number(origin.port || 443)
    const tunnel = proxy && new ProxyTunnel({ proxy, host, port, timeoutMs: connectTimeoutMs })
    const socket = connectTls({ ...tls, host, port, socket: tunnel, ALPNProtocols: ['h2', 'http/1.1'] })
    const late = (): void => {
      socket.destroy(new KubeError('Timeout', `no connection to ${origin.host} within ${connectTimeoutMs} ms`))
    }
    const timer = setTimeout(late, connectTimeoutMs)
    const failed = (error: Error): void => {
      clearTimeout(timer)
      reject(error)
    }
    socket.once('error', failed)
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      socket.off('error', failed)
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}

function keepAlive(session: ClientHttp2Session, { everyMs, timeoutMs }: KeepAlive): void {
  const timer = setInterval(() => {
    const lost = new KubeError('ConnectionLost', `the server did not answer a ping within ${timeoutMs} ms`)
    const late = setTimeout(() => session.destroy(lost), timeoutMs)
    late.unref()
    const isSent = !session.destroyed && session.ping(() => clearTimeout(late))
    if (!isSent) clearTimeout(late)
  }, everyMs)
  timer.unref()
  session.once('close', () => clearInterval(timer))
}
