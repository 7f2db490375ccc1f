import { silentLogger } from '@corral/ports'
import { linkedController } from './linked-signal.js'
import { serveProcess } from './process/serve-process.js'
import { forwardedPorts, processStreams } from './query-flags.js'
import { refuseUpgrade } from './refuse.js'
import { probePeer, socketStream } from './socket-stream.js'
import { chooseProcessVersion, expectedStreams, spdyProcessClient } from './spdy/process-client.js'
import { portPairs } from './spdy/serve-ports.js'
import { type SpdyStream, spdySession } from './spdy/session.js'
import type { PortUpgrade, ProcessStreams, ProcessUpgrade, StreamUpgrade } from './stream-upgrade.js'
import { acceptWebSocket, pingWhileOpen } from './websocket/accept-web-socket.js'
import { webSocketProcessClient } from './websocket/process-client.js'
import { servePortChannels } from './websocket/serve-port-channels.js'
import { chooseCodec, offeredProtocols, tunnelProtocol } from './websocket/subprotocols.js'
import { tunnelStream } from './websocket/tunnel-stream.js'

const defaults = { openTimeoutMs: 30_000, pingIntervalMs: 30_000, highWaterBytes: 256 * 1024 }

/**
 * Serves one exec, attach or port-forward request over WebSocket or SPDY/3.1, whichever its `Upgrade` header asks for,
 * from the handshake to the last byte. Who may do it and whether the pod runs is the caller's to check before. Settles
 * when the connection is over and never rejects: a request it cannot serve is answered with a Status.
 */
export async function handleUpgrade(upgrade: StreamUpgrade): Promise<void> {
  const { request, socket, log = silentLogger } = upgrade
  socket.on('error', () => {}) // a client that vanishes must not end the process
  try {
    const query = new URL(request.url ?? '/', 'http://host').searchParams
    const protocol = request.headers.upgrade?.toLowerCase() ?? ''
    if (protocol === 'websocket') await serveWebSocket(upgrade, query)
    else if (protocol === 'spdy/3.1') await serveSpdy(upgrade, query)
    else refuseUpgrade(socket, 400, 'BadRequest', 'Upgrade request required')
  } catch (error) {
    log.warn('stream failed', { kind: upgrade.kind, error })
    socket.destroy()
  }
}

/** Whether the request asks for one of the protocols `handleUpgrade` speaks. */
export function isStreamUpgrade(headers: { upgrade?: string | undefined }): boolean {
  const protocol = headers.upgrade?.toLowerCase()
  return protocol === 'websocket' || protocol === 'spdy/3.1'
}

async function serveWebSocket(upgrade: StreamUpgrade, query: URLSearchParams): Promise<void> {
  const { pingIntervalMs, highWaterBytes, openTimeoutMs } = { ...defaults, ...upgrade.limits }
  const offered = offeredProtocols(upgrade.request.headers['sec-websocket-protocol'])
  const isTunnel = upgrade.kind === 'portforward' && offered.includes(tunnelProtocol)
  const codec = chooseCodec(upgrade.kind === 'portforward' ? 'port' : 'process', offered)
  if (!isTunnel && !codec) return refuseProtocol(upgrade, offered)

  const streams = upgrade.kind === 'portforward' ? undefined : checkedStreams(upgrade, query)
  const ports = upgrade.kind === 'portforward' && !isTunnel ? checkedPorts(upgrade, query) : []
  if ((upgrade.kind !== 'portforward' && !streams) || !ports) return
  const webSocket = await acceptWebSocket(upgrade, isTunnel ? tunnelProtocol : (codec?.name ?? ''))
  if (!webSocket) return
  pingWhileOpen(webSocket, pingIntervalMs)

  if (isTunnel && upgrade.kind === 'portforward') {
    const session = spdySession(tunnelStream(webSocket, highWaterBytes), highWaterBytes)
    return servePorts(session, upgrade, openTimeoutMs)
  }
  if (!codec) return
  if (upgrade.kind !== 'portforward') {
    if (!streams) return
    return serveProcess(webSocketProcessClient(webSocket, codec, streams, highWaterBytes), streams, upgrade)
  }
  const lifetime = linkedController(upgrade.signal)
  webSocket.once('close', () => lifetime.abort(new Error('the client is gone')))
  await servePortChannels(webSocket, codec, ports, upgrade, lifetime.signal, highWaterBytes)
  lifetime.release()
}

async function serveSpdy(upgrade: StreamUpgrade, query: URLSearchParams): Promise<void> {
  const { openTimeoutMs, highWaterBytes } = { ...defaults, ...upgrade.limits }
  const header = upgrade.request.headers['x-stream-protocol-version']
  const offered = offeredProtocols(Array.isArray(header) ? header.join(',') : header)
  const begin = (protocol: string) => {
    switchProtocols(upgrade, protocol)
    return spdySession(socketStream(upgrade.socket, upgrade.head), highWaterBytes)
  }
  if (upgrade.kind === 'portforward') {
    if (offered.length > 0 && !offered.includes('portforward.k8s.io')) return refuseProtocol(upgrade, offered)
    return servePorts(begin('portforward.k8s.io'), upgrade, openTimeoutMs)
  }
  const chosen = chooseProcessVersion(offered)
  if (!chosen) return refuseProtocol(upgrade, offered)
  const streams = checkedStreams(upgrade, query)
  if (!streams) return

  const session = begin(chosen.name)
  const gone = new AbortController()
  const opened = new Map<string, SpdyStream>()
  const expected = expectedStreams(streams, chosen.version)
  const tooLate = setTimeout(() => upgrade.socket.destroy(), openTimeoutMs)
  let serving: Promise<void> | undefined
  await session.run((stream) => {
    const type = stream.headers.get('streamtype') ?? ''
    if (!expected.includes(type) || opened.has(type)) return stream.destroy()
    opened.set(type, stream)
    if (opened.size < expected.length) return
    clearTimeout(tooLate)
    serving = serveProcess(spdyProcessClient(session, opened, chosen.version, gone.signal), streams, upgrade)
  })
  clearTimeout(tooLate)
  gone.abort(new Error('the client is gone'))
  await serving
}

async function servePorts(
  session: ReturnType<typeof spdySession>,
  upgrade: PortUpgrade,
  openTimeoutMs: number,
): Promise<void> {
  const lifetime = linkedController(upgrade.signal)
  const end = () => void session.finish(0)
  lifetime.signal.addEventListener('abort', end, { once: true })
  const pairs = portPairs(upgrade, lifetime.signal, openTimeoutMs)
  await session.run((stream) => pairs.take(stream))
  lifetime.release()
  lifetime.signal.removeEventListener('abort', end)
  lifetime.abort(new Error('the client is gone'))
  await pairs.settled()
}

function switchProtocols({ socket }: StreamUpgrade, protocol: string): void {
  probePeer(socket)
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: SPDY/3.1']
  socket.write([...lines, `X-Stream-Protocol-Version: ${protocol}`, '', ''].join('\r\n'))
}

function checkedStreams({ socket }: ProcessUpgrade, query: URLSearchParams): ProcessStreams | undefined {
  const streams = processStreams(query)
  if (streams.stdin || streams.stdout || streams.stderr) return streams
  refuseUpgrade(socket, 400, 'BadRequest', 'you must specify at least 1 of stdin, stdout, stderr')
  return undefined
}

function checkedPorts({ socket }: PortUpgrade, query: URLSearchParams): number[] | undefined {
  const ports = forwardedPorts(query)
  if (ports && ports.length > 0) return ports
  refuseUpgrade(socket, 400, 'BadRequest', 'query parameter "ports" must name at least one port')
  return undefined
}

function refuseProtocol({ socket }: StreamUpgrade, offered: readonly string[]): void {
  refuseUpgrade(socket, 403, 'Forbidden', `unable to upgrade: none of the protocols is known: ${offered.join(', ')}`)
}
