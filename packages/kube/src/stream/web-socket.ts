import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { KubeError } from '@corral/resources'
import WebSocket from 'ws'
import type { ClusterAccess, Credentials } from '../cluster-access.js'
import { connectionError } from '../http/connection-error.js'
import type { TransportRequest } from '../kube-transport.js'
import { responseError } from '../response-error.js'

/** Largest message we accept; servers send far smaller ones. */
const maxPayload = 4 * 1024 * 1024
const pingIntervalMs = 15_000
const maxRefusalBytes = 64 * 1024

/**
 * Opens a WebSocket to an API server over the connection `connect` hands out. Rejects with the server's own Status when
 * it refuses the upgrade. The socket comes paused: the caller resumes it once it listens, so that none is missed.
 */
export async function openWebSocket(
  access: ClusterAccess,
  credentials: Credentials,
  connect: () => Socket,
  request: TransportRequest,
  protocols: readonly string[],
  userAgent: string,
): Promise<WebSocket> {
  const { signal, timeoutMs = 30_000 } = request
  signal?.throwIfAborted()
  const action = `connect ${request.path}`
  const url = new URL(access.server.origin.replace(/^http/, 'ws'))
  url.pathname = request.path
  url.search = request.query?.toString() ?? ''
  const socket = new WebSocket(url, [...protocols], {
    headers: {
      'user-agent': userAgent,
      ...(credentials.authorization === undefined ? {} : { authorization: credentials.authorization }),
      ...credentials.impersonation,
    },
    handshakeTimeout: timeoutMs,
    perMessageDeflate: false,
    maxPayload,
    createConnection: connect,
  })

  return new Promise<WebSocket>((resolve, reject) => {
    const settle = (finish: () => void) => {
      signal?.removeEventListener('abort', onAbort)
      clearTimeout(timer)
      finish()
    }
    const fail = (error: unknown) => settle(() => reject(error))
    const onAbort = () => {
      fail(signal?.reason)
      socket.terminate()
    }
    // The handshake timeout of the library starts with the TCP connection; this one covers all of it.
    const timer = setTimeout(() => {
      fail(new KubeError('Timeout', `${action}: no answer from ${access.server.origin} within ${timeoutMs} ms`))
      socket.terminate()
    }, timeoutMs)
    signal?.addEventListener('abort', onAbort, { once: true })
    socket.on('error', (error) => fail(connectionError(error, action)))
    socket.once('unexpected-response', (_, response) => {
      refusal(response, action).then(fail, fail)
    })
    socket.once('open', () => {
      // What came with the server's answer would be emitted before the code that awaits this promise runs.
      socket.pause()
      settle(() => resolve(socket))
    })
  })
}

/** Pings the server and drops the connection when two pings in a row stay unanswered. */
export function keepAlive(socket: WebSocket): void {
  let isAnswered = true
  let unanswered = 0
  socket.on('pong', () => {
    isAnswered = true
  })
  const timer = setInterval(() => {
    // A paused socket reads no pongs: silence says nothing then.
    if (socket.isPaused) return
    unanswered = isAnswered ? 0 : unanswered + 1
    if (unanswered >= 2) return socket.terminate()
    isAnswered = false
    socket.ping()
  }, pingIntervalMs)
  timer.unref()
  socket.once('close', () => clearInterval(timer))
}

/** Sends one message; resolves when the socket has taken it, rejects when the connection is gone. */
export function sendMessage(socket: WebSocket, data: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (socket.readyState !== WebSocket.OPEN) return reject(new KubeError('ConnectionLost', 'the stream is closed'))
    socket.send(data, { binary: true }, (error) => (error ? reject(connectionError(error, 'send')) : resolve()))
  })
}

async function refusal(response: IncomingMessage, action: string): Promise<KubeError> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxRefusalBytes) break
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  return responseError({ status: response.statusCode ?? 500, body: parse(text) }, action)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text // a proxy's page: shown as it is
  }
}
