import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Logger } from '@corral/resources'
import type { Provider } from './provider.js'
import type { TaskTokens } from './task-token.js'
import { anthropicMeter, type TokenUsage } from './usage-meter.js'

/** What the broker asks about a task before it lets a request through. */
export interface BrokeredTask {
  uid: string
  provider: Provider
  /** Tokens already spent and the most this task may spend; absent: no limit. */
  spentTokens: number
  maxTokens?: number
}

export interface BrokerOptions {
  tokens: TaskTokens
  /** The running task of that uid; undefined when it does not run (any more) or its agent has no provider. */
  findTask(uid: string): Promise<BrokeredTask | undefined>
  /** The platform's key for a provider; undefined when none is set. */
  findKey(provider: Provider): Promise<string | undefined>
  baseUrlOf(provider: Provider): string
  recordUsage(uid: string, usage: TokenUsage): void
  host?: string
  /** 0: any free port. */
  port: number
  maxRequestsPerMinute?: number
  log: Logger
}

export interface Broker {
  readonly host: string
  readonly port: number
  close(): Promise<void>
}

const maxRequestBytes = 64 * 1024 * 1024

/**
 * A reverse proxy to the model providers that stands outside every sandbox: it takes a task's token, adds the real key,
 * passes bytes through as they arrive, and counts. It logs sizes and counts, never bodies or keys.
 */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const pace = requestPace(options.maxRequestsPerMinute ?? 600)
  const server = createServer((request, response) => {
    serve(request, response, options, pace).catch((error: unknown) => {
      options.log.warn('broker request failed', { error: error instanceof Error ? error.message : String(error) })
      refuse(response, 502, 'api_error', 'the model provider could not be reached')
    })
  })
  server.requestTimeout = 0
  server.headersTimeout = 30_000
  server.keepAliveTimeout = 120_000
  const host = options.host ?? '127.0.0.1'
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, host, resolve)
  })
  return {
    host,
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  options: BrokerOptions,
  pace: (uid: string) => boolean,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://broker')
  if (url.pathname === '/healthz') return refuse(response, 200, 'ok', 'ok')
  const uid = options.tokens.verify(tokenOf(request) ?? '')
  const task = uid ? await options.findTask(uid) : undefined
  if (!task) return refuse(response, 401, 'authentication_error', 'this token names no running task')
  if (!task.provider.allows(request.method ?? 'GET', url.pathname))
    return refuse(response, 403, 'permission_error', `${request.method} ${url.pathname} is not open to sandboxes`)
  if (task.maxTokens !== undefined && task.spentTokens >= task.maxTokens)
    return refuse(response, 403, 'permission_error', `the task has spent its ${task.maxTokens} tokens`)
  if (!pace(task.uid))
    return refuse(response, 429, 'rate_limit_error', 'too many requests from this task', { 'retry-after': '5' })
  const key = await options.findKey(task.provider)
  if (!key)
    return refuse(
      response,
      401,
      'authentication_error',
      `no ${task.provider.name} key is set: run corral secret set ${task.provider.secret}`,
    )
  await forward(request, response, { task, key, url, options })
}

function forward(
  request: IncomingMessage,
  response: ServerResponse,
  { task, key, url, options }: { task: BrokeredTask; key: string; url: URL; options: BrokerOptions },
): Promise<void> {
  const target = new URL(options.baseUrlOf(task.provider))
  const headers = forwardedHeaders(request)
  headers.host = target.host
  task.provider.authorize(headers, key)
  const send = target.protocol === 'https:' ? httpsRequest : httpRequest
  const startedAt = Date.now()
  return new Promise<void>((resolve, reject) => {
    const upstream = send(target, {
      method: request.method,
      path: `${target.pathname.replace(/\/$/, '')}${url.pathname}${url.search}`,
      headers,
      timeout: 10 * 60_000,
    })
    let sentBytes = 0
    request.on('data', (chunk: Buffer) => {
      sentBytes += chunk.length
      if (sentBytes > maxRequestBytes) upstream.destroy(new Error(`request body over ${maxRequestBytes} bytes`))
    })
    request.pipe(upstream)
    upstream.on('timeout', () => upstream.destroy(new Error('the model provider sent nothing for ten minutes')))
    upstream.on('error', (error) => (response.headersSent ? response.destroy(error) : reject(error)))
    response.on('close', () => {
      if (!response.writableFinished) upstream.destroy()
      resolve()
    })
    upstream.on('response', (reply) => {
      const meter = anthropicMeter(String(reply.headers['content-type'] ?? ''))
      let receivedBytes = 0
      response.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.on('data', (chunk: Buffer) => {
        receivedBytes += chunk.length
        meter.push(chunk)
      })
      reply.on('error', (error) => response.destroy(error))
      reply.on('close', () => {
        const usage = meter.end()
        if (usage) options.recordUsage(task.uid, usage)
        options.log.info('model call', {
          task: task.uid,
          status: reply.statusCode,
          sentBytes,
          receivedBytes,
          durationMs: Date.now() - startedAt,
          ...(usage ? { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens } : {}),
        })
      })
      reply.pipe(response)
    })
  })
}

const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // A compressed answer could not be counted on its way.
  'accept-encoding',
  'x-api-key',
  'authorization',
])

function forwardedHeaders(request: IncomingMessage): Record<string, string | string[] | undefined> {
  return Object.fromEntries(Object.entries(request.headers).filter(([name]) => !hopByHop.has(name)))
}

function tokenOf(request: IncomingMessage): string | undefined {
  const bearer = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1]
  const apiKey = request.headers['x-api-key']
  return bearer ?? (typeof apiKey === 'string' ? apiKey : undefined)
}

/** Errors in the provider's own shape, so that the agent's client understands them. */
function refuse(
  response: ServerResponse,
  status: number,
  type: string,
  message: string,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent) return void response.destroy()
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(status === 200 ? { status: message } : { type: 'error', error: { type, message } }))
}

/** At most `limit` requests a task in any minute that begins on the minute. */
function requestPace(limit: number): (uid: string) => boolean {
  let minute = 0
  let counts = new Map<string, number>()
  return (uid) => {
    const now = Math.floor(Date.now() / 60_000)
    if (now !== minute) {
      minute = now
      counts = new Map()
    }
    const count = (counts.get(uid) ?? 0) + 1
    counts.set(uid, count)
    return count <= limit
  }
}
