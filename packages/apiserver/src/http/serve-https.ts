import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { type ApiUser, type Logger, silentLogger } from '@corral/ports'
import { handleUpgrade, refuseWith } from '@corral/streams'
import { apiError } from '../errors/api-error.js'
import { errorResponse, errorStatus } from '../request/responses.js'
import type { ApiServer } from '../server/api-server.js'
import { authenticator } from './authentication.js'
import { ensureCertificates, ensureToken, type TlsMaterial } from './certificates.js'
import { readBody, toApiRequest } from './read-request.js'
import { writeResponse } from './write-response.js'

export interface ServeHttpsOptions {
  server: ApiServer
  /** 0 takes a free one. */
  port: number
  /** Loopback unless said otherwise. */
  host?: string
  /** Certificates and the administrator's token live in `tls/` here, and are made when missing. */
  dataDir: string
  /** Origins of web pages that may call; none by default. */
  allowedOrigins?: readonly string[]
  /** How long a watch may be silent before a space goes out; 17 s unless said otherwise, and 0 never sends one. */
  watchKeepAliveMs?: number
  log?: Logger
}

/** A running listener and what a client needs to talk to it. */
export interface HttpsEndpoint {
  readonly url: string
  readonly host: string
  readonly port: number
  readonly tls: TlsMaterial
  readonly token: string
  /** Stops listening and cuts what is still connected. The API server itself stays open. */
  close(): Promise<void>
}

const KEEP_ALIVE_MS = 125_000
/** Some clients give up on a watch after half a minute without bytes. */
const WATCH_KEEP_ALIVE_MS = 17_000
const MAX_HEADER_BYTES = 1024 * 1024

/** Serves the API over TLS: HTTP/1.1, certificate or token, upgrades included. Resolves once it listens. */
export async function serveHttps(options: ServeHttpsOptions): Promise<HttpsEndpoint> {
  const { server, dataDir, log = silentLogger, host = '127.0.0.1', watchKeepAliveMs = WATCH_KEEP_ALIVE_MS } = options
  const isWildcard = host === '0.0.0.0' || host === '::'
  const tls = await ensureCertificates(join(dataDir, 'tls'), isWildcard ? [] : [host])
  // A file of its own: the `token` beside it opens the task API, whose holders are no administrators here.
  const token = ensureToken(join(dataDir, 'tls', 'admin.token'))
  const authenticate = authenticator({ token, authenticateToken: (text) => server.authenticateToken(text) })
  const origins = new Set(options.allowedOrigins ?? [])
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // One listener per running stream is no leak.
  const sockets = new Set<Socket>()
  const ports: Ports = { server, authenticate, origins, closing: closing.signal, watchKeepAliveMs }

  const listener = createServer({
    key: tls.server.key,
    cert: tls.server.cert,
    ca: [tls.ca.cert],
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  })
  listener.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}) // A client that vanishes is no news; its request ends by its own `close`.
    socket.on('close', () => sockets.delete(socket))
  })
  listener.on('tlsClientError', (error: Error) => log.debug('TLS handshake failed', { error: error.message }))
  listener.on('clientError', refuseMalformed)
  listener.on('request', (message: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => {}) // Writing to a client that left; `close` ends what feeds it.
    void answer(message, response, ports)
  })
  listener.on('upgrade', (message: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {})
    void upgrade(message, socket, head, ports, log)
  })

  await listen(listener, options.port, host)
  const { port } = listener.address() as AddressInfo
  // Some clients that are no browsers (Python's WebSocket, for one) name the server itself as their origin.
  for (const name of ['127.0.0.1', 'localhost', '[::1]']) origins.add(`https://${name}:${port}`)
  const shown = isWildcard ? '127.0.0.1' : host
  return {
    url: `https://${shown.includes(':') ? `[${shown}]` : shown}:${port}`,
    host: shown,
    port,
    tls,
    token,
    async close() {
      closing.abort()
      const closed = new Promise<void>((resolve) => {
        listener.close(() => resolve())
      })
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Bytes that are no HTTP request, or headers beyond the limit, get a bare answer: there is no request to answer. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  if (socket.writable) {
    socket.end(
      `HTTP/1.1 ${isTooLarge ? '431 Request Header Fields Too Large' : '400 Bad Request'}\r\nConnection: close\r\n\r\n`,
    )
  } else socket.destroy()
}

interface Ports {
  server: ApiServer
  authenticate(message: IncomingMessage): ApiUser | undefined
  origins: ReadonlySet<string>
  closing: AbortSignal
  watchKeepAliveMs: number
}

async function answer(message: IncomingMessage, response: ServerResponse, ports: Ports): Promise<void> {
  const wishes = {
    isHead: message.method === 'HEAD',
    acceptsGzip: (message.headers['accept-encoding'] ?? '').includes('gzip'),
    watchKeepAliveMs: ports.watchKeepAliveMs,
  }
  try {
    checkOrigin(message, ports.origins)
    const user = ports.authenticate(message)
    const signal = mayStream(message) ? goneSignal(response, ports.closing) : undefined
    const hasBody = message.method !== 'GET' && message.method !== 'HEAD'
    const body = hasBody ? await readBody(message) : undefined
    const result = await ports.server.handle(toApiRequest(message, user, signal, body))
    if (!response.destroyed) await writeResponse(response, result, wishes)
  } catch (error) {
    if (response.headersSent) response.destroy()
    else await writeResponse(response, errorResponse(error), wishes)
  }
}

function checkOrigin(message: IncomingMessage, allowed: ReadonlySet<string>): void {
  const { origin } = message.headers
  if (origin === undefined || allowed.has(origin)) return
  throw apiError(403, 'Forbidden', 'requests from web pages of other origins are refused')
}

/** Watches, logs and waiting lists end when their client leaves; for anything else a signal is not worth its price. */
function mayStream(message: IncomingMessage): boolean {
  const url = message.url ?? ''
  return message.method === 'GET' && (url.includes('watch') || url.includes('/log') || url.includes('resourceVersion'))
}

/** Aborts when the response is over, which for a request is not the same as its body having been read. */
function goneSignal(response: ServerResponse, closing: AbortSignal): AbortSignal {
  const gone = new AbortController()
  const abort = (): void => gone.abort()
  closing.addEventListener('abort', abort, { once: true })
  response.on('close', () => {
    closing.removeEventListener('abort', abort)
    abort()
  })
  return gone.signal
}

async function upgrade(
  message: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  ports: Ports,
  log: Logger,
): Promise<void> {
  try {
    checkOrigin(message, ports.origins)
    const plan = ports.server.planStream(toApiRequest(message, ports.authenticate(message)))
    await handleUpgrade({ request: message, socket, head, signal: ports.closing, log, ...plan })
  } catch (error) {
    refuseWith(socket, errorStatus(error))
  }
}

function listen(listener: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(port, host, () => {
      listener.off('error', reject)
      resolve()
    })
  })
}
