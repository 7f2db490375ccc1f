import { type ClientRequest, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { KubeError } from '@corral/resources'

export interface TunnelOptions {
  /** `http:` or `https:`; user and password in it are sent to the proxy. */
  proxy: URL
  host: string
  port: number
  timeoutMs: number
}

/**
 * A connection to a host through an HTTP proxy, by CONNECT. It may be written to at once: bytes wait until the proxy has
 * agreed. What the proxy refuses ends it with a `KubeError` of code `ConnectionLost`, or `Timeout` when it says nothing.
 */
export class ProxyTunnel extends Duplex {
  readonly #request: ClientRequest
  #socket: Socket | undefined
  #waiting: (() => void) | undefined

  constructor({ proxy, host, port, timeoutMs }: TunnelOptions) {
    super()
    const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
    const send = proxy.protocol === 'https:' ? requestHttps : requestHttp
    this.#request = send({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: Number(proxy.port) || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: target,
      agent: false,
      headers: { host: target, ...authorization(proxy) },
      timeout: timeoutMs,
    })
    const name = `the proxy ${proxy.host}`
    this.#request.once('timeout', () => this.destroy(new KubeError('Timeout', `${name}: no answer in ${timeoutMs} ms`)))
    this.#request.once('error', (cause) =>
      this.destroy(new KubeError('ConnectionLost', `${name}: ${cause.message}`, { cause })),
    )
    this.#request.once('connect', ({ statusCode }, socket, head) => {
      if (statusCode === 200) return this.#join(socket, head)
      socket.destroy()
      this.destroy(new KubeError('ConnectionLost', `${name} answers ${statusCode} to a connection to ${target}`))
    })
    // An answer to CONNECT that is no tunnel comes as an ordinary response where the proxy closes after it.
    this.#request.once('response', ({ statusCode }) =>
      this.destroy(new KubeError('ConnectionLost', `${name} answers ${statusCode} to a connection to ${target}`)),
    )
    this.#request.end()
  }

  #join(socket: Socket, head: Buffer): void {
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
    this.#request.destroy()
    this.#socket?.destroy()
    done(error)
  }
}

function authorization({ username, password }: URL): { 'proxy-authorization'?: string } {
  if (username === '') return {}
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(text).toString('base64')}` }
}
