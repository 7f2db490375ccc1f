import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Clock, Logger } from '@corral/ports'
import type { Registry } from 'prom-client'
import { errorText } from '../shared/error-text.js'
import { type CertificatePair, watchCertificate } from './certificate-watch.js'
import { cpuProfile } from './cpu-profile.js'
import type { EndpointOptions, MetricsTls } from './options.js'
import { selfSignedCertificate } from './self-signed.js'

export interface EndpointPorts {
  options: EndpointOptions
  metrics: Registry
  clock: Clock
  log: Logger
  /** Told of every reading of the certificate's files, with the error of one that failed. */
  onCertificate?: (error?: unknown) => void
}

export interface Endpoints {
  /** Where the servers listen; absent for those switched off. */
  readonly metricsPort?: number
  readonly healthPort?: number
  stop(): Promise<void>
}

/** Opens the health and metrics ports. Rejects when an address is taken or a certificate cannot be read. */
export async function startEndpoints(ports: EndpointPorts): Promise<Endpoints> {
  const { options } = ports
  const lifetime = new AbortController()
  const servers: Server[] = []
  let stopWatching = (): void => {}
  try {
    const health = await open(options.healthAddress, createServer(healthListener), servers)
    const listener = metricsListener(ports, lifetime.signal)
    const secure = options.metricsTls && (await secureServer(options.metricsTls, ports, listener))
    stopWatching = secure?.stopWatching ?? stopWatching
    const metricsServer = secure?.server ?? createServer(listener)
    const metrics = await open(options.metricsAddress, metricsServer, servers)
    return {
      ...(metrics !== undefined && { metricsPort: metrics }),
      ...(health !== undefined && { healthPort: health }),
      stop: () => stopAll(),
    }
  } catch (error) {
    await stopAll()
    throw error
  }

  async function stopAll(): Promise<void> {
    lifetime.abort()
    stopWatching()
    await Promise.all(
      servers.map((server) => {
        const closed = new Promise<void>((resolve) => server.close(() => resolve()))
        server.closeAllConnections()
        return closed
      }),
    )
  }
}

/** Listens on `host:port` or `:port`. The address `0` means no server. */
async function open(address: string, server: Server, opened: Server[]): Promise<number | undefined> {
  if (address === '0' || address === '') return undefined
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  const port = Number(address.slice(colon + 1))
  if (colon < 0 || !Number.isInteger(port)) throw new Error(`"${address}" is no address: expected host:port or :port`)
  server.requestTimeout = 60_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, ...(host && { host }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  opened.push(server)
  const bound = server.address()
  return typeof bound === 'object' && bound ? bound.port : port
}

const healthListener: RequestListener = (request, response) => {
  const { pathname } = urlOf(request)
  if (pathname === '/healthz' || pathname === '/readyz') answer(response, 200, 'ok')
  else answer(response, 404, '404 page not found\n')
}

function metricsListener({ metrics, options, log }: EndpointPorts, signal: AbortSignal): RequestListener {
  return (request, response) => {
    serve(request, response).catch((error: unknown) => {
      log.warn('metrics request failed', { error })
      if (!response.headersSent) answer(response, 500, `${errorText(error)}\n`)
      else response.destroy()
    })
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = urlOf(request)
    if (url.pathname === '/metrics') {
      response.setHeader('content-type', metrics.contentType)
      response.end(await metrics.metrics())
    } else if (options.pprof && url.pathname === '/debug/pprof/profile') {
      const seconds = Number(url.searchParams.get('seconds') ?? 30) || 30
      const profile = await cpuProfile(seconds * 1000, signal)
      response.setHeader('content-type', 'application/octet-stream')
      response.setHeader('content-disposition', 'attachment; filename="profile"')
      response.end(profile)
    } else if (options.pprofDebug && /^\/debug\/(pprof\/|fgprof)/.test(url.pathname)) {
      answer(response, 404, `${url.pathname}: this profile does not exist in Node.js; use /debug/pprof/profile\n`)
    } else answer(response, 404, '404 page not found\n')
  }
}

/** What is no address, such as `//`, has no page: it must not throw, for nothing catches what a listener throws. */
function urlOf(request: IncomingMessage): URL {
  const address = request.url ?? '/'
  return new URL(URL.canParse(address, 'http://localhost') ? address : '/', 'http://localhost')
}

function answer(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' })
  response.end(text)
}

/** A server whose certificate is the one in its directory, now and after every change; one made here without. */
async function secureServer(
  tls: MetricsTls,
  { clock, log, onCertificate }: EndpointPorts,
  listener: RequestListener,
): Promise<{ server: TlsServer; stopWatching?: () => void }> {
  const context = (pair: CertificatePair | { cert: string; key: string }): object => ({
    ...pair,
    minVersion: tls.minVersion ?? 'TLSv1.2',
    ...(tls.cipherSuites && { ciphers: tls.cipherSuites.join(':') }),
  })
  if (!tls.certDir) return { server: createTlsServer(context(selfSignedCertificate(clock.now())), listener) }
  const certificate = await watchCertificate({
    directory: tls.certDir,
    onRead(error) {
      onCertificate?.(error)
      if (error !== undefined) log.warn('certificate not read', { directory: tls.certDir, error })
    },
    onChange(pair) {
      server.setSecureContext(context(pair))
      log.info('certificate changed', { directory: tls.certDir })
    },
  })
  const server = createTlsServer(context(certificate.pair), listener)
  return { server, stopWatching: certificate.stop }
}
