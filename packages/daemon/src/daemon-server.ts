import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { bootHeader, CorralError, type ErrorCode, errorBody, processLineHost, reverseHost } from '@corral/protocol'
import { getRequestListener } from '@hono/node-server'
import type { Daemon } from './create-daemon.js'
import { serveProcessLine } from './process-line.js'
import { rememberMessage } from './request-input.js'

/** Where to listen: a TCP port (0 = any) on an address, or a unix socket. */
export type ListenTarget = { readonly port: number; readonly host?: string } | { readonly socket: string }

export interface DaemonServer {
  /** The port, where one is listened on. */
  readonly port: number | undefined
  /** Stops accepting, gives open requests `graceMs`, then drops them. */
  close(graceMs: number): Promise<void>
}

export interface ServeOptions {
  /** Why a request must not pass; health checks are never asked. */
  readonly refuse?: (request: { headers: { authorization?: string | undefined } }) => string | undefined
  /** Upstream's older API on the same port; true where it took the request. */
  readonly legacy?: (request: IncomingMessage, response: ServerResponse) => boolean
}

/** Serves the daemon. Rejects when the address cannot be had; a socket file left by a dead daemon is replaced. */
export async function serveDaemon(
  daemon: Pick<Daemon, 'fetch'> & Partial<Pick<Daemon, 'reversePorts' | 'openProcess' | 'boot'>>,
  target: ListenTarget,
  options: ServeOptions = {},
): Promise<DaemonServer> {
  const answer = (request: Request, { incoming }: { incoming: unknown }): Promise<Response> => {
    // This server speaks HTTP/1.1 only.
    rememberMessage(request, incoming as IncomingMessage)
    return daemon.fetch(request)
  }
  const listener = getRequestListener(answer, { overrideGlobalObjects: false })
  // Output is followed for as long as a process runs, and an upload takes as long as it takes.
  const server = createServer(
    { requestTimeout: 0, headersTimeout: 20_000, keepAliveTimeout: 60_000 },
    (request, response) => {
      const isHealth = request.url === '/healthz' || request.url === '/'
      const reason = isHealth ? undefined : options.refuse?.(request)
      if (reason) return refuse(response, reason)
      if (!options.legacy?.(request, response)) void listener(request, response)
    },
  )
  // Node counts them no longer among the server's connections, but waits for them all the same.
  const lines = new Set<Duplex>()
  server.on('connect', (request: IncomingMessage, line: Duplex, early: Buffer) => {
    if (early.length > 0) line.unshift(early)
    line.on('error', () => undefined)
    lines.add(line)
    line.once('close', () => lines.delete(line))
    const reason = options.refuse?.(request)
    if (reason) return refuseLine(line, 401, 'Unauthorized', reason)
    if (request.url?.startsWith(`${processLineHost}:`) && daemon.openProcess) {
      const { openProcess } = daemon
      line.write(`HTTP/1.1 200 Ready\r\n${bootHeader}: ${daemon.boot}\r\n\r\n`)
      return serveProcessLine(line, (id, start, boot) => openProcess(id, start, boot))
    }
    const port = Number(new RegExp(`^${reverseHost}:(\\d{1,5})$`).exec(request.url ?? '')?.[1])
    if (!daemon.reversePorts || !(port >= 1 && port <= 65_535))
      return refuseLine(line, 400, 'BadRequest', `CONNECT takes ${reverseHost}:PORT`)
    // Said before the line is parked: from then on the next byte belongs to a connection.
    daemon.reversePorts
      .open(port)
      .then(() => {
        line.write('HTTP/1.1 200 Parked\r\n\r\n')
        return daemon.reversePorts?.park(port, line)
      })
      .catch((error: unknown) => {
        const code = error instanceof CorralError ? error.code : 'InternalError'
        refuseLine(line, 409, code, error instanceof Error ? error.message : String(error))
      })
  })
  if ('socket' in target) {
    await rm(target.socket, { force: true })
    server.listen(target.socket)
  } else {
    server.listen(target.port, target.host ?? '::')
  }
  await once(server, 'listening')
  return {
    port: 'socket' in target ? undefined : (server.address() as AddressInfo).port,
    close: (graceMs) => closeServer(server, lines, graceMs),
  }
}

function refuse(response: ServerResponse, reason: string): void {
  response.writeHead(401, { 'content-type': 'application/json' })
  response.end(JSON.stringify(errorBody('Unauthorized', reason)))
}

function refuseLine(line: Duplex, status: number, code: ErrorCode, message: string): void {
  const body = JSON.stringify(errorBody(code, message))
  const length = `content-length: ${Buffer.byteLength(body)}`
  line.end(
    `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\n${length}\r\nconnection: close\r\n\r\n${body}`,
  )
}

async function closeServer(server: Server, lines: Iterable<Duplex>, graceMs: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  const timer = setTimeout(() => {
    server.closeAllConnections()
    for (const line of lines) line.destroy()
  }, graceMs)
  await closed
  clearTimeout(timer)
}
