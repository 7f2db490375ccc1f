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
      // Not caught anywhere: an address such as `//` that throws here would end the whole process.
      const url = URL.canParse(request.url ?? '/', 'http://host')
        ? new URL(request.url ?? '/', 'http://host')
        : undefined
      if (!url) return refuse(socket, describe('BadRequest', 'the request cannot be read: its path is no address'))
      const match = options.routes
        .map((route) => ({ route, params: decoded(route.path.exec(url.pathname)?.slice(1)) }))
        .find(({ params }) => params)
      if (!match?.params) return refuse(socket, describe('NotFound', `there is no WebSocket at ${url.pathname}`))
      const header = (name: string): string | undefined => request.headers[name] as string | undefined
      const answer = options.gate({ method: 'GET', path: url.pathname, header })
      if (answer.refusal) return refuse(socket, answer.refusal)
      const { route, params } = match
      server.handleUpgrade(request, socket, head, (webSocket) => {
        const gone = new AbortController()
        webSocket.once('close', () => gone.abort())
        webSocket.on('error', () => webSocket.terminate())
        const signal = AbortSignal.any([gone.signal, lifetime.signal])
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

/** Undefined where there are none, or one is no UTF-8 once its `%` are read. */
function decoded(parts: readonly string[] | undefined): string[] | undefined {
  try {
    return parts?.map((part) => decodeURIComponent(part))
  } catch {
    return undefined // a URIError: no name is written like this
  }
}

function refuse(socket: Duplex, { status, body }: HttpError): void {
  const text = JSON.stringify(body)
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  )
}
