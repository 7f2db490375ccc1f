import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'

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
}): Promise<HttpServer> {
  const host = options.host ?? '127.0.0.1'
  const answer = getRequestListener(options.fetch)
  const server: Server = createServer((request, response) => {
    // The listener answers failures itself; what is left is a caller who went away.
    answer(request, response).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 65_000
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
      server.closeAllConnections()
      await closed
    },
  }
}
