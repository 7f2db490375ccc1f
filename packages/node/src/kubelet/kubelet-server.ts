import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { type Logger, type PodStreams, silentLogger } from '@corral/ports'
import { errorCode } from '@corral/resources'
import { handleUpgrade, refuseUpgrade } from '@corral/streams'
import { type KubeletRoute, kubeletRoute, logOptions } from './kubelet-route.js'
import { type Authorize, callerOf } from './subject-access.js'

export interface KubeletServerOptions {
  node: { readonly podStreams: PodStreams }
  /** 0 takes any free port. */
  port: number
  /** Certificate and key of the node. Only clients with a certificate signed by `clientCa` are let in. */
  tls: { cert: string; key: string; clientCa: string }
  /** Asked before every stream and log. */
  authorize: Authorize
  host?: string
  log?: Logger
}

export interface KubeletServer {
  readonly port: number
  /** Ends running streams; settles when the last connection is closed. */
  close(): Promise<void>
}

/** The kubelet's streaming routes over HTTPS, for an API server in another process. */
export async function startKubeletServer(options: KubeletServerOptions): Promise<KubeletServer> {
  const { tls, node, authorize, log = silentLogger } = options
  const life = new AbortController()
  const sockets = new Set<Socket>()
  const { cert, key, clientCa } = tls
  const server = createServer({ cert, key, ca: clientCa, requestCert: true, rejectUnauthorized: true })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    answer(node.podStreams, authorize, request, response).catch((error: unknown) => {
      log.debug('kubelet request failed', { path: request.url, error })
      response.destroy()
    })
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgrade(node.podStreams, authorize, { request, socket, head, signal: life.signal, log }).catch((error: unknown) => {
      log.debug('kubelet stream failed', { path: request.url, error })
      socket.destroy()
    })
  })
  await listen(server, options.port, options.host ?? '0.0.0.0')
  return {
    port: (server.address() as AddressInfo).port, // a TCP server that listens has one
    async close() {
      life.abort()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function answer(
  streams: PodStreams,
  authorize: Authorize,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = urlOf(request)
  const route = kubeletRoute(url.pathname)
  if (route?.kind === 'health') return sendText(response, 200, 'ok')
  if (!route) return sendText(response, 404, '404 page not found\n')
  if (route.kind !== 'logs') return sendText(response, 400, 'Upgrade request required\n')
  const refusal = await refusalOf(request, authorize, 'get')
  if (refusal) return sendText(response, 403, `${refusal}\n`)
  const options = logOptions(url.searchParams)
  if (!options) return sendText(response, 400, 'invalid log options\n')
  await sendLogs(streams, route, options, response)
}

async function sendLogs(
  streams: PodStreams,
  route: Extract<KubeletRoute, { kind: 'logs' }>,
  options: NonNullable<ReturnType<typeof logOptions>>,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  let chunks: AsyncIterable<Uint8Array>
  try {
    chunks = await streams.logs(route.pod, { ...options, container: route.container, signal: gone.signal })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return sendText(response, errorCode(error) === 'NotFound' ? 404 : 400, `${message}\n`)
  }
  response.writeHead(200, { 'content-type': 'text/plain' })
  response.flushHeaders()
  for await (const chunk of chunks) {
    if (!response.write(chunk) && !gone.signal.aborted) await drained(response)
  }
  response.end()
}

/** Room again, or closed. Leaves no listener behind: one for each wait would look like a leak in a long log. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}

interface Upgrade {
  request: IncomingMessage
  socket: Duplex
  head: Buffer
  signal: AbortSignal
  log: Logger
}

async function upgrade(streams: PodStreams, authorize: Authorize, base: Upgrade): Promise<void> {
  const url = urlOf(base.request)
  const route = kubeletRoute(url.pathname)
  if (!route || route.kind === 'health' || route.kind === 'logs') {
    refuseUpgrade(base.socket, 404, 'NotFound', `no stream at ${url.pathname}`)
    return
  }
  const refusal = await refusalOf(base.request, authorize, 'create')
  if (refusal) return refuseUpgrade(base.socket, 403, 'Forbidden', refusal)
  if (route.kind === 'portForward') {
    void handleUpgrade({
      ...base,
      kind: 'portforward',
      dial: (port, signal) => streams.portForward(route.pod, port, { signal }),
    })
    return
  }
  const { kind, pod, container } = route
  const command = url.searchParams.getAll('command')
  void handleUpgrade({
    ...base,
    kind,
    start: (wanted, signal) =>
      kind === 'exec'
        ? streams.exec(pod, { ...wanted, container, command, signal })
        : streams.attach(pod, { ...wanted, container, signal }),
  })
}

/** Why the caller may not do this; undefined where it may. */
async function refusalOf(
  { socket }: IncomingMessage,
  authorize: Authorize,
  verb: 'get' | 'create',
): Promise<string | undefined> {
  const caller = callerOf(socket as TLSSocket) // the server speaks TLS only
  if (caller && (await authorize(caller, verb))) return undefined
  return `Forbidden (user=${caller?.name ?? ''}, verb=${verb}, resource=nodes, subresource=proxy)`
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(text)
}

const urlOf = (request: IncomingMessage): URL => new URL(request.url ?? '/', 'https://node')

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
