import { createServer } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { getRequestListener } from '@hono/node-server'
import { isAggregator } from './external-metrics.js'

export interface AggregatedListenOptions {
  fetch: (request: Request) => Promise<Response>
  host?: string | undefined
  port: number
  cert: Buffer
  key: Buffer
  /** Who signs for the aggregation layer, PEM, and the names it may have; any where none is given. */
  authority: string
  names: readonly string[]
}

/** Serves a `fetch` handler on TLS to the aggregation layer of an API server and refuses every other client. */
export async function listenAggregated(options: AggregatedListenOptions): Promise<{ close(): Promise<void> }> {
  const answer = getRequestListener(options.fetch)
  const { cert, key, authority } = options
  // A client without a certificate gets an answer that says so instead of a closed connection.
  const tls = { cert, key, ca: authority, requestCert: true, rejectUnauthorized: false }
  const server = createServer(tls, (request, response) => {
    if (!isAggregator(request.socket as TLSSocket, options.names)) {
      response.writeHead(401, { 'content-type': 'text/plain' }).end('only the API server is answered here\n')
      return
    }
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return {
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}
