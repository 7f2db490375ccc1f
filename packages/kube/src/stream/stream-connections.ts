import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'
import type { ClusterAccess, Credentials } from '../cluster-access.js'
import { ProxyTunnel } from '../http/proxy-tunnel.js'

/** Servers wait longer than this for the first request on a connection, so a spare is never one they are closing. */
const spareAgeMs = 10_000
/** Out of the way of the stream that is being opened. */
const spareDelayMs = 50
const tunnelTimeoutMs = 10_000

/**
 * Connections for streams, each of which takes one for good. The handshake is most of what opening a stream costs: TLS
 * sessions are resumed, and while streams follow each other one connection waits for the next. It keeps no process
 * alive and is closed when unused.
 */
export class StreamConnections {
  readonly #access: ClusterAccess
  #cert: string | undefined
  #context: SecureContext | undefined
  #session: Buffer | undefined
  #spare: Socket | undefined
  #spareTimer: NodeJS.Timeout | undefined
  #lastTakenAtMs = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(access: ClusterAccess) {
    this.#access = access
  }

  /** A connection that is open or being opened; its `error` says why it could not be. */
  take(credentials: Credentials): Socket {
    if (credentials.cert !== this.#cert) this.#forgetUser(credentials.cert)
    const nowMs = performance.now()
    // An unused tunnel would keep the process alive.
    if (!this.#access.proxy && nowMs - this.#lastTakenAtMs < spareAgeMs) this.#spareSoon(credentials)
    this.#lastTakenAtMs = nowMs
    return this.#takeSpare() ?? this.#open(credentials)
  }

  close(): void {
    this.#isClosed = true
    this.#dropSpare()
  }

  /** Connections and sessions belong to the user who opened them. */
  #forgetUser(cert: string | undefined): void {
    this.#cert = cert
    this.#context = undefined
    this.#session = undefined
    this.#dropSpare()
  }

  #takeSpare(): Socket | undefined {
    const spare = this.#spare
    this.#spare = undefined
    // A server that has said something unasked is about to close.
    if (!spare?.writable || spare.readableLength > 0) {
      spare?.destroy()
      return undefined
    }
    return spare.ref()
  }

  #spareSoon(credentials: Credentials): void {
    clearTimeout(this.#spareTimer)
    this.#spareTimer = setTimeout(() => {
      if (this.#isClosed || this.#spare) return
      const spare = this.#open(credentials).unref()
      this.#spare = spare
      spare.once('close', () => {
        if (this.#spare === spare) this.#spare = undefined
      })
      this.#spareTimer = setTimeout(() => this.#dropSpare(), spareAgeMs).unref()
    }, spareDelayMs).unref()
  }

  #dropSpare(): void {
    clearTimeout(this.#spareTimer)
    this.#spare?.destroy()
    this.#spare = undefined
  }

  #open({ cert, key }: Credentials): Socket {
    const { server, tls, proxy } = this.#access
    const isSecure = server.protocol === 'https:'
    const host = server.hostname.replace(/^\[|\]$/g, '')
    const address = { host, port: Number(server.port) || (isSecure ? 443 : 80), noDelay: true }
    if (!isSecure) return quiet(connectTcp(address))
    this.#context ??= createSecureContext({
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    })
    const socket = connectTls({
      ...(proxy ? { socket: new ProxyTunnel({ ...address, proxy, timeoutMs: tunnelTimeoutMs }) } : address),
      secureContext: this.#context,
      rejectUnauthorized: tls.rejectUnauthorized,
      servername: tls.servername ?? (isIP(host) ? '' : host),
      ...(this.#session === undefined ? {} : { session: this.#session }),
    })
    socket.on('session', (session: Buffer) => {
      if (this.#cert === cert) this.#session = session
    })
    return quiet(socket)
  }
}

/** The user of the connection gets its error; without this a spare that fails would end the process. */
function quiet(socket: Socket): Socket {
  return socket.on('error', () => {})
}
