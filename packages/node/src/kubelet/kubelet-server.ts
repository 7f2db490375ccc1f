import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { errorCode, type Logger, type PodStreams, silentLogger } from '@corral/resources'
import { handleUpgrade, refuseUpgrade } from '@corral/streams'
import { type KubeletRoute, kubeletRoute, logOptions } from './kubelet-route.js'

export interface KubeletServerOptions {
  node: { readonly podStreams: PodStreams }
  /** 0 takes any free port. */
  port: number
  /**
   * Certificate and key of the node. With `clientCa` only clients with a certificate signed by it are let in; without
   * it the server listens on loopback, whatever `host` says.
   */
  tls: { cert: string; key: string; clientCa?: string }
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
  const { tls, node, log = silentLogger } = options
  const life = new AbortController()
  const sockets = new Set<Socket>()
  const clients = tls.clientCa ? { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true } : {}
  const server = createServer({ cert: tls.cert, key: tls.key, ...clients })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    answer(node.podStreams, request, response).catch((error: unknown) => {
      log.debug('kubelet request failed', { path: request.url, error })
      response.destroy()
    })
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgrade(node.podStreams, { request, socket, head, signal: life.signal, log })
  })
  const host = tls.clientCa ? (options.host ?? '0.0.0.0') : '127.0.0.1'
  await listen(server, options.port, host)
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

async function answer(streams: PodStreams, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = urlOf(request)
  const route = kubeletRoute(url.pathname)
  if (route?.kind === 'health') return sendText(response, 200, 'ok')
  if (!route) return sendText(response, 404, '404 page not found\n')
  if (route.kind !== 'logs') return sendText(response, 400, 'Upgrade request required\n')
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
    chunks = streams.logs(route.pod, { ...options, container: route.container, signal: gone.signal })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return sendText(response, errorCode(error) === 'NotFound' ? 404 : 400, `${message}\n`)
  }
  response.writeHead(200, { 'content-type': 'text/plain' })
  response.flushHeaders()
  for await (const chunk of chunks) {
    if (!response.write(chunk) && !gone.signal.aborted) {
      await new Promise<void>((resolve) => {
        response.once('drain', resolve)
        response.once('close', resolve)
      })
    }
  }
  response.end()
}

interface Upgrade {
  request: IncomingMessage
  socket: Duplex
  head: Buffer
  signal: AbortSignal
  log: Logger
}

function upgrade(streams: PodStreams, base: Upgrade): void {
  const url = urlOf(base.request)
  const route = kubeletRoute(url.pathname)
  if (!route || route.kind === 'health' || route.kind === 'logs') {
    refuseUpgrade(base.socket, 404, 'NotFound', `no stream at ${url.pathname}`)
    return
  }
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
