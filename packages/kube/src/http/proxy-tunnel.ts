import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { httpConnect } from './http-connect.js'
import { socksConnect } from './socks-connect.js'

export interface TunnelOptions {
  /** `http:`, `https:`, `socks5:` or `socks5h:`; user and password in it are sent to the proxy. */
  proxy: URL
  host: string
  port: number
  timeoutMs: number
}

/** What a proxy agreed to: a connection to the host behind it, and what the host said with the proxy's last word. */
export interface Tunnelled {
  socket: Socket
  head: Buffer
}

/**
 * A connection to a host through a proxy. It may be written to at once: bytes wait until the proxy has agreed. What the
 * proxy refuses ends it with a `KubeError` of code `ConnectionLost`, or `Timeout` when it says nothing.
 */
export class ProxyTunnel extends Duplex {
  readonly #lifetime = new AbortController()
  #socket: Socket | undefined
  #waiting: (() => void) | undefined

  constructor(options: TunnelOptions) {
    super()
    const connect = options.proxy.protocol.startsWith('socks5') ? socksConnect : httpConnect
    connect(options, this.#lifetime.signal).then(
      (tunnelled) => this.#join(tunnelled),
      (error: Error) => this.destroy(error),
    )
  }

  #join({ socket, head }: Tunnelled): void {
    if (this.destroyed) return void socket.destroy()
    this.#socket = socket
    socket.setTimeout(0)
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) socket.pause()
    })
    socket.once('end', () => this.push(null))
    socket.once('error', (error) => this.destroy(error))
    socket.once('close', () => this.destroy())
    if (head.length > 0) this.push(head)
    socket.resume()
    this.#waiting?.()
    this.#waiting = undefined
  }

  override _read(): void {
    this.#socket?.resume()
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#socket) this.#socket.write(chunk, encoding, done)
    else this.#waiting = () => this.#socket?.write(chunk, encoding, done)
  }

  override _final(done: () => void): void {
    if (this.#socket) this.#socket.end(done)
    else done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#lifetime.abort()
    this.#socket?.destroy()
    done(error)
  }
}
