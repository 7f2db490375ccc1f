import { type WebSocket, WebSocketServer } from 'ws'
import { probePeer } from '../socket-stream.js'
import type { StreamUpgrade } from '../stream-upgrade.js'
import { tunnelProtocol } from './subprotocols.js'

/** A frame with more than this is refused; clients send far smaller ones. */
const maxPayload = 4 * 1024 * 1024
const closeGraceMs = 5_000

/** Completes the handshake with the chosen sub-protocol. Undefined when the request is malformed: it is answered then. */
export function acceptWebSocket(
  { request, socket, head }: Pick<StreamUpgrade, 'request' | 'socket' | 'head'>,
  protocol: string,
): Promise<WebSocket | undefined> {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload,
    handleProtocols: () => protocol || false,
  })
  if (protocol === tunnelProtocol) {
    // The library refuses a name with a slash, which kubectl uses all the same: it is hidden and put back.
    delete request.headers['sec-websocket-protocol']
    server.once('headers', (headers) => headers.push(`Sec-WebSocket-Protocol: ${protocol}`))
  }
  return new Promise((resolve) => {
    const onClose = () => resolve(undefined)
    socket.once('close', onClose)
    server.handleUpgrade(request, socket, head, (webSocket) => {
      socket.off('close', onClose)
      probePeer(socket)
      webSocket.on('error', () => {}) // `close` follows and is what callers listen to
      resolve(webSocket)
    })
  })
}

/** Pings now and then, so that proxies in between see life. */
export function pingWhileOpen(webSocket: WebSocket, intervalMs: number): void {
  if (intervalMs <= 0) return
  const timer = setInterval(() => webSocket.ping(), intervalMs)
  timer.unref()
  webSocket.once('close', () => clearInterval(timer))
}

/** Resolves when the message has left for the socket, so that a fast sender never fills memory. */
export function send(webSocket: WebSocket, data: Buffer | string): Promise<void> {
  return new Promise((resolve, reject) => {
    if (webSocket.readyState !== webSocket.OPEN) return reject(new Error('the connection is closed'))
    webSocket.send(data, { binary: typeof data !== 'string' }, (error) => (error ? reject(error) : resolve()))
  })
}

/** Closes politely and settles when the client has answered or had its time. */
export function closeWebSocket(webSocket: WebSocket, code = 1000, reason = ''): Promise<void> {
  return new Promise((resolve) => {
    if (webSocket.readyState === webSocket.CLOSED) return resolve()
    const timer = setTimeout(() => webSocket.terminate(), closeGraceMs)
    webSocket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
    // Reading must go on, or the client's own close frame would never arrive.
    webSocket.resume()
    webSocket.close(code, reason)
  })
}
