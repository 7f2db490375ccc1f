import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Logger } from '@corral/ports'
import type { ProcessRegistry } from './process-registry.js'
import { sandboxdFiles } from './sandboxd-files.js'

export interface SandboxdOptions {
  readonly host: string
  readonly restPort: number
  readonly grpcPort: number
  readonly root: string
  readonly metadataPrefix: string
  readonly env: NodeJS.ProcessEnv
  readonly processes: ProcessRegistry
  readonly log: Logger
  /** Why a request must not pass; undefined lets it. */
  readonly refuse: (request: { headers: { authorization?: string | undefined } }) => string | undefined
}

export interface SandboxdServer {
  readonly restPort: number
  readonly grpcPort: number
  /** Calls under way have `graceMs` to answer: the exit of a command that was just ended is one of those answers. */
  close(graceMs?: number): Promise<void>
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void
/**
 * Of one message, unpacked: what upstream's server takes. The library would take 4 GiB, reads a message before it asks for the
 * token, and a few megabytes of gzip make that many: whoever reaches the port could end the daemon.
 */
const maxMessageBytes = 4 * 1024 * 1024
const preface = Buffer.from('PRI ')

/**
 * Upstream's sandboxd: REST on one port, `process.v1.ProcessService` on the other, there as gRPC, gRPC-Web and Connect
 * over HTTP/1.1 or HTTP/2 without TLS. The gRPC library is loaded by the first connection that needs it.
 */
export async function serveSandboxd(options: SandboxdOptions): Promise<SandboxdServer> {
  await mkdir(options.root, { recursive: true, mode: 0o755 })
  let isStopping = false
  const files = sandboxdFiles({ ...options, isStopping: () => isStopping })
  const guarded: Handler = (request, response) => {
    const reason = request.url === '/v1/health' ? undefined : options.refuse(request)
    if (!reason) return files(request, response)
    response.writeHead(401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ code: 'UNAUTHENTICATED', message: reason }))
  }
  const rest = createServer({ requestTimeout: 0, headersTimeout: 10_000, keepAliveTimeout: 60_000 }, guarded)
  let servers: Promise<GrpcServers> | undefined
  const sockets = new Set<Socket>()
  const calls = new CallsUnderWay()
  const grpc = createTcpServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    servers ??= grpcServers(options, calls)
    void passOn(socket, servers).catch((error: unknown) => {
      options.log.error('gRPC connection failed', { error: String(error) })
      socket.destroy()
    })
  })
  await Promise.all([listen(rest, options.restPort, options.host), listen(grpc, options.grpcPort, options.host)])
  return {
    restPort: portOf(rest),
    grpcPort: portOf(grpc),
    async close(graceMs = 0) {
      isStopping = true
      const closed = Promise.all([once(rest, 'close'), once(grpc, 'close')])
      rest.close()
      grpc.close()
      await calls.done(graceMs)
      rest.closeAllConnections()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Answers that are not sent to their end yet. */
class CallsUnderWay {
  readonly #open = new Set<object>()
  #onDone: (() => void) | undefined

  add(response: { once(event: 'close', listener: () => void): unknown }): void {
    this.#open.add(response)
    response.once('close', () => {
      this.#open.delete(response)
      if (this.#open.size === 0) this.#onDone?.()
    })
  }

  async done(graceMs: number): Promise<void> {
    if (this.#open.size === 0 || graceMs <= 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs)
      this.#onDone = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

interface GrpcServers {
  readonly http1: { emit(event: 'connection', socket: Duplex): boolean }
  readonly http2: { emit(event: 'connection', socket: Duplex): boolean }
}

/** HTTP/2 without TLS begins with a preface of its own; everything else is HTTP/1.1. */
async function passOn(socket: Socket, servers: Promise<GrpcServers>): Promise<void> {
  const first = await new Promise<Buffer | undefined>((resolve) => {
    socket.once('data', (chunk) => {
      socket.pause()
      resolve(chunk)
    })
    socket.once('close', () => resolve(undefined))
  })
  if (!first) return
  const { http1, http2 } = await servers
  if (first.subarray(0, preface.length).equals(preface)) {
    http2.emit('connection', reopened(socket, first))
    return
  }
  socket.unshift(first)
  http1.emit('connection', socket)
  socket.resume()
}

/** The connection from its first byte on: HTTP/2 reads a socket beneath JavaScript, past what was read here already. */
function reopened(socket: Socket, first: Buffer): Duplex {
  const duplex = new Duplex({
    read: () => void socket.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      if (socket.write(chunk)) done()
      else socket.once('drain', () => done())
    },
    final: (done) => {
      socket.end()
      done()
    },
    destroy: (error, done) => {
      socket.destroy()
      done(error)
    },
  })
  duplex.push(first)
  socket.on('data', (chunk) => {
    if (!duplex.push(chunk)) socket.pause()
  })
  socket.once('end', () => duplex.push(null))
  socket.once('close', () => duplex.destroy())
  return duplex
}

async function grpcServers(options: SandboxdOptions, calls: CallsUnderWay): Promise<GrpcServers> {
  const [{ connectNodeAdapter }, { Code, ConnectError }, { processService }, http2] = await Promise.all([
    import('@connectrpc/connect-node'),
    import('@connectrpc/connect'),
    import('./sandboxd-processes.js'),
    import('node:http2'),
  ])
  const answer = connectNodeAdapter({
    routes: processService(options.processes, options.root),
    readMaxBytes: maxMessageBytes,
    interceptors: [
      (next) => (request) => {
        const reason = options.refuse({ headers: { authorization: request.header.get('authorization') ?? undefined } })
        if (reason) throw new ConnectError(reason, Code.Unauthenticated)
        return next(request)
      },
    ],
  })
  const handler: typeof answer = (request, response) => {
    calls.add(response)
    // The library makes an address of host and path before it asks for the token, and throws where they are none.
    try {
      answer(request, response)
    } catch (error) {
      options.log.warn('gRPC request is none', { error: String(error) })
      response.writeHead(400)
      response.end()
    }
  }
  return { http1: createServer(handler), http2: http2.createServer({}, handler) }
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening')
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}
