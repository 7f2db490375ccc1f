import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { errorResponse } from '@corral/protocol'
import { getRequestListener, RequestError } from '@hono/node-server'
import { describe } from './http-error.js'

export interface HttpServer {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

/** Serves a `fetch` handler on loopback unless another host is asked for. Port 0: any free one. */
export async function listen(options: {
  fetch: (request: Request) => Response | Promise<Response>
  host?: string
  port: number
  /** Takes the start of WebSockets, and ends them with the server. */
  sockets?: { upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void; close(): Promise<void> }
}): Promise<HttpServer> {
  const host = options.host ?? '127.0.0.1'
  const answer = getRequestListener(options.fetch, {
    errorHandler: (error) =>
      error instanceof RequestError
        ? errorResponse('BadRequest', `the request cannot be read: ${error.message}`)
        : errorResponse('InternalError', 'the request failed inside the platform'),
  })
  const server: Server = createServer((request, response) => {
    // The handler answers its own failures; an error that arrives here means that the client closed the connection.
    answer(request, response).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 65_000
  server.on('clientError', refuse)
  const { sockets } = options
  if (sockets) server.on('upgrade', (request, socket, head) => sockets.upgrade(request, socket, head))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      await sockets?.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** What is not even HTTP is answered with the same kind of body as every other mistake, and the connection ends. */
function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const [status, reason] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'Request Header Fields Too Large']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'Request Timeout']
        : [400, 'Bad Request']
  const body = JSON.stringify(describe('BadRequest', `the request cannot be read: ${reason}`, Number(status)).body)
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
