import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from '@corral/ports'
import { type WebSocket, WebSocketServer } from 'ws'
import { describe, type HttpError } from './http-error.js'
import type { Gate } from './request-gate.js'

/** Serves one WebSocket; settles when it is over. */
export type SocketHandler = (
  socket: WebSocket,
  request: { params: readonly string[]; query: URLSearchParams; signal: AbortSignal },
) => Promise<void>

export interface SocketRoute {
  path: RegExp
  handle: SocketHandler
}

/** The WebSockets of the API. Each asks the same gate as every request; closing ends all of them. */
export interface SocketUpgrades {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): Promise<void>
}

const maxMessageBytes = 256 * 1024

export function createSocketUpgrades(options: {
  gate: Gate
  routes: readonly SocketRoute[]
  log: Logger
}): SocketUpgrades {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: maxMessageBytes,
    // Lists compress to a tenth; small frames of a live feed are left alone.
    perMessageDeflate: { threshold: 4096, serverNoContextTakeover: true, clientNoContextTakeover: true },
  })
  const lifetime = new AbortController()
  const open = new Set<Promise<void>>()

  return {
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      const url = new URL(request.url ?? '/', 'http://host')
      const match = options.routes
        .map((route) => ({ route, found: route.path.exec(url.pathname) }))
        .find(({ found }) => found)
      if (!match?.found) return refuse(socket, describe('NotFound', `there is no WebSocket at ${url.pathname}`))
      const header = (name: string): string | undefined => request.headers[name] as string | undefined
      const answer = options.gate({ method: 'GET', path: url.pathname, header })
      if (answer.refusal) return refuse(socket, answer.refusal)
      const { route, found } = match
      server.handleUpgrade(request, socket, head, (webSocket) => {
        const gone = new AbortController()
        webSocket.once('close', () => gone.abort())
        webSocket.on('error', () => webSocket.terminate())
        const signal = AbortSignal.any([gone.signal, lifetime.signal])
        const params = found.slice(1).map((part) => decodeURIComponent(part))
        const served = route
          .handle(webSocket, { params, query: url.searchParams, signal })
          .catch((error: unknown) => {
            if (!signal.aborted) options.log.error('a WebSocket failed', { path: url.pathname, error })
          })
          .finally(() => {
            webSocket.close()
            open.delete(served)
          })
        open.add(served)
      })
    },
    async close() {
      lifetime.abort()
      for (const client of server.clients) client.terminate()
      await Promise.all(open)
    },
  }
}

function refuse(socket: Duplex, { status, body }: HttpError): void {
  const text = JSON.stringify(body)
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  )
}
