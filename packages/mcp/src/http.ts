import { randomUUID, timingSafeEqual } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { buildMcpServer } from './mcp-server.js'
import { maxFileBytes } from './sandbox-tools.js'
import { type McpBackend, McpSession } from './session.js'

export interface McpHttpOptions {
  readonly backend: McpBackend
  /** Every request carries it as a bearer token. */
  readonly token: string
  readonly host: string
  readonly port: number
  /** A session without a request for so long is ended, and its sandboxes with it. */
  readonly idleMs?: number
}

export interface McpHttpServer {
  readonly url: string
  close(): Promise<void>
}

interface OpenSession {
  readonly session: McpSession
  readonly transport: WebStandardStreamableHTTPServerTransport
  idle: NodeJS.Timeout
}

const maxSessions = 100
/** A file as base64, or as text each of whose characters JSON escapes with another. */
const maxRequestBytes = 2 * maxFileBytes + 1024 * 1024

/** Streamable HTTP at `/mcp`: a session per client, each with sandboxes of its own. */
export async function serveMcpHttp(options: McpHttpOptions): Promise<McpHttpServer> {
  const { backend, idleMs = 30 * 60_000 } = options
  const sessions = new Map<string, OpenSession>()

  const end = async (id: string): Promise<void> => {
    const open = sessions.get(id)
    if (!open) return
    sessions.delete(id)
    clearTimeout(open.idle)
    await open.transport.close()
    await open.session.close()
  }

  const begin = async (): Promise<WebStandardStreamableHTTPServerTransport> => {
    const session = new McpSession(backend, randomUUID())
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => session.id,
      maxRequestBodySize: maxRequestBytes,
      onsessioninitialized: (id) => {
        sessions.set(id, { session, transport, idle: idleTimer(id) })
      },
      onsessionclosed: (id) => end(id),
    })
    await buildMcpServer(session).connect(transport)
    return transport
  }

  const idleTimer = (id: string): NodeJS.Timeout =>
    setTimeout(() => void end(id).catch(() => undefined), idleMs).unref()

  const handle = async (request: Request): Promise<Response> => {
    const refusal = refusalOf(request, options)
    if (refusal) return refusal
    const id = request.headers.get('mcp-session-id')
    if (id === null) {
      if (sessions.size >= maxSessions) return refused(429, `${maxSessions} sessions are open already`)
      return (await begin()).handleRequest(request)
    }
    const open = sessions.get(id)
    if (!open) return refused(404, 'the session has ended: initialize a new one')
    clearTimeout(open.idle)
    open.idle = idleTimer(id)
    return open.transport.handleRequest(request)
  }

  const listener = getRequestListener(handle)
  const server = createServer((request, response) => void listener(request, response))
  await listening(server, options.port, options.host)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}/mcp`,
    async close() {
      await Promise.allSettled([...sessions.keys()].map(end))
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Browsers on other pages reach a port of this machine too: they name a foreign Origin, and know no token. A page whose
 * name was pointed at this machine names its own as Host and as Origin.
 */
function refusalOf(request: Request, { token, host }: McpHttpOptions): Response | undefined {
  const url = new URL(request.url)
  const isLocal = loopback.has(host) || host === '::1'
  if (isLocal && !loopback.has(url.hostname)) return refused(403, `requests to ${url.hostname} are not accepted`)
  if (url.pathname !== '/mcp') return refused(404, 'MCP is served at /mcp')
  const origin = request.headers.get('origin')
  if (origin !== null && origin !== url.origin) return refused(403, `requests of ${origin} are not accepted`)
  const given = Buffer.from(request.headers.get('authorization') ?? '')
  const wanted = Buffer.from(`Bearer ${token}`)
  if (given.length === wanted.length && timingSafeEqual(given, wanted)) return undefined
  return refused(401, 'the bearer token is missing or wrong')
}

function refused(status: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32_000, message } }, { status })
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
}
