import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type HeaderRecord, type Provider, providers } from '@corral/agents'
import type { Logger } from '@corral/ports'
import { type BrokeredTask, hasBudget, overBudget } from './brokered-task.js'
import { type BudgetTurns, createBudgetTurns } from './budget-turns.js'
import { createUpstreamAgents, defaultPatience, forward, type Patience, type UpstreamAgents } from './forward.js'
import type { FinishedCall } from './model-call.js'
import type { ProviderHolds } from './provider-holds.js'
import { bodyLimits, ReplayRoom, RequestBody } from './request-body.js'
import { requestPace } from './request-pace.js'
import { createRequestTurns } from './request-turns.js'
import type { TaskTokens } from './task-token.js'

export interface BrokerOptions {
  tokens: TaskTokens
  /** The running task of that uid; undefined when it does not run (any more) or its agent has no provider. */
  findTask(uid: string): Promise<BrokeredTask | undefined>
  /** The platform's key for a provider; undefined when none is set. */
  findKey(provider: Provider): Promise<string | undefined>
  baseUrlOf(provider: Provider): string
  /** Told about every call of a model when it is over, also about those that were refused. */
  recordCall(uid: string, call: FinishedCall): void
  holds?: ProviderHolds
  host?: string
  /** 0: any free port. */
  port: number
  maxRequestsPerMinute?: number
  maxRequestBytes?: number
  patience?: Partial<Patience>
  log: Logger
}

export interface Broker {
  readonly host: string
  readonly port: number
  close(): Promise<void>
}

/** A node holds the connections of its pods to less than this; in a cluster many nodes share one broker. */
const maxConnections = 4096

interface BrokerState {
  options: BrokerOptions
  pace: (uid: string) => boolean
  agents: UpstreamAgents
  patience: Patience
  room: ReplayRoom
  budgetTurns: BudgetTurns
}

/**
 * A reverse proxy to the model providers that stands outside every sandbox: it takes a task's token, adds the real key,
 * passes bytes through as they arrive, and counts. It logs sizes and counts, never bodies or keys.
 */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const state: BrokerState = {
    options,
    pace: requestPace(options.maxRequestsPerMinute ?? 600, Date.now),
    agents: createUpstreamAgents(),
    patience: { ...defaultPatience, ...options.patience },
    room: new ReplayRoom(),
    budgetTurns: createBudgetTurns(),
  }
  const inTurn = createRequestTurns()
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    // The client closed the connection while its request waited in the queue.
    if (response.destroyed) return
    serve(request, response, state).catch((error: unknown) => {
      options.log.warn('broker request failed', { error: messageOf(error) })
      refuse(response, undefined, 502, 'the model provider could not be reached')
    })
  }
  const server = createServer({ connectionsCheckingInterval: 5_000 }, (request, response) =>
    inTurn(() => take(request, response)),
  )
  // Clients that try a WebSocket first go on with a plain request when they are told so.
  server.on('upgrade', (_request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => undefined)
    socket.end('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
  })
  // This limits how long a sandbox may take to send its request, not how long the model may take to answer.
  server.requestTimeout = 5 * 60_000
  server.headersTimeout = 30_000
  server.maxConnections = maxConnections
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
      state.agents.destroy()
    },
  }
}

async function serve(request: IncomingMessage, response: ServerResponse, state: BrokerState): Promise<void> {
  const { options } = state
  if (!URL.canParse(request.url ?? '/', 'http://broker')) return refuse(response, undefined, 400, 'this is no address')
  const url = new URL(request.url ?? '/', 'http://broker')
  if (url.pathname === '/healthz') return void answerJson(response, 200, { status: 'ok' })
  const uid = options.tokens.verify(tokenOf(request) ?? '')
  const task = uid ? await options.findTask(uid) : undefined
  if (!task) return refuse(response, undefined, 401, 'this token names no running task')
  const { provider } = task
  const route = provider.routeOf(request.method ?? 'GET', url.pathname)
  if (!route) return refuse(response, provider, 403, `${request.method} ${url.pathname} is not open to sandboxes`)
  const isCall = route === 'call'
  if (!isCall || !hasBudget(task)) return serveTask(request, response, { task, url, isCall, state })
  const endTurn = await state.budgetTurns.take(task.uid, () => response.destroyed)
  if (!endTurn) return
  try {
    // Looked up again: calls that ended meanwhile are counted now, and the task itself may have ended.
    const current = await options.findTask(task.uid)
    if (!current) return refuse(response, provider, 401, 'this token names no running task')
    await serveTask(request, response, { task: current, url, isCall, state })
  } finally {
    endTurn()
  }
}

async function serveTask(
  request: IncomingMessage,
  response: ServerResponse,
  { task, url, isCall, state }: { task: BrokeredTask; url: URL; isCall: boolean; state: BrokerState },
): Promise<void> {
  const { options } = state
  const { provider } = task
  const refusal = isCall ? overBudget(task) : undefined
  if (refusal !== undefined) {
    options.recordCall(task.uid, { provider, status: 403, durationMs: 0, error: refusal, code: 'BudgetExceeded' })
    return refuse(response, provider, 403, refusal)
  }
  if (!state.pace(task.uid))
    return refuse(response, provider, 429, 'too many requests from this task', { 'retry-after': '5' })
  const key = await options.findKey(provider)
  if (!key && !provider.isKeyOptional) {
    const hint = `run corral secret set ${provider.secret}`
    return refuse(response, provider, 401, `no ${provider.title} key is set: ${hint}`)
  }
  const finished = await pass(request, response, { task, url, key, state })
  if (finished && isCall) options.recordCall(task.uid, finished)
}

/** Undefined where the request was refused for its size before the provider answered. */
async function pass(
  request: IncomingMessage,
  response: ServerResponse,
  { task, url, key, state }: { task: BrokeredTask; url: URL; key: string | undefined; state: BrokerState },
): Promise<FinishedCall | undefined> {
  const { options } = state
  const { provider } = task
  const target = targetOf(options.baseUrlOf(provider), url)
  const headers = forwardedHeaders(request)
  headers.host = target.host
  if (key) provider.authorize(headers, key)
  const maxBytes = options.maxRequestBytes ?? bodyLimits.maxBytes
  const isDeclaredTooLarge = Number(request.headers['content-length'] ?? 0) > maxBytes
  if (isDeclaredTooLarge) return void tooLarge(request, response, provider, maxBytes)
  const body = new RequestBody(request, {
    uid: task.uid,
    room: state.room,
    onTooLarge: () => tooLarge(request, response, provider, maxBytes),
    maxBytes,
  })
  const startedMs = Date.now()
  try {
    const finished = await forward({
      request,
      response,
      body,
      provider,
      target,
      headers,
      path: url.pathname,
      agents: state.agents,
      patience: state.patience,
      onBusy: (waitMs) => options.holds?.note(provider.name, waitMs),
      now: Date.now,
    })
    if (finished.status < 400) options.holds?.clear(provider.name)
    options.log.info('model call', { task: task.uid, status: finished.status, durationMs: finished.durationMs })
    return finished
  } catch (error) {
    if (body.size > maxBytes) return undefined
    options.log.warn('model call failed', { task: task.uid, provider: provider.name, error: messageOf(error) })
    const message = unreachableWords(target, error)
    refuse(response, provider, 502, message)
    const durationMs = Date.now() - startedMs
    return { provider, status: 0, durationMs, model: body.model, error: message }
  } finally {
    body.release()
  }
}

function tooLarge(request: IncomingMessage, response: ServerResponse, provider: Provider, maxBytes: number): void {
  refuse(response, provider, 413, `the request has more than ${maxBytes} bytes`, { connection: 'close' })
  // The rest of the request body is not read.
  request.unpipe()
  request.pause()
  response.once('finish', () => request.destroy())
}

/** A base address that already ends with the first part of the path, as `…/v1` does, is not given it twice. */
export function targetOf(baseUrl: string, { pathname, search }: URL): URL {
  const target = new URL(baseUrl)
  const base = target.pathname.replace(/\/+$/, '')
  const first = /^\/[^/]+/.exec(pathname)?.[0] ?? ''
  const isRepeated = first !== '' && base.endsWith(first)
  target.pathname = `${base}${isRepeated ? pathname.slice(first.length) : pathname}`
  target.search = search
  return target
}

const keyHeaders = new Set([...providers.values()].flatMap((provider) => provider.keyHeaders))

const notForwarded = new Set([
  ...keyHeaders,
  'connection',
  'keep-alive',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  // Tokens are counted while the answer is passed on, which a compressed answer would prevent.
  'accept-encoding',
])

function forwardedHeaders(request: IncomingMessage): HeaderRecord {
  return Object.fromEntries(Object.entries(request.headers).filter(([name]) => !notForwarded.has(name)))
}

function tokenOf({ headers }: IncomingMessage): string | undefined {
  const bearer = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1]
  if (bearer !== undefined) return bearer
  for (const name of keyHeaders) {
    const value = headers[name]
    if (typeof value === 'string' && name !== 'authorization') return value
  }
  return undefined
}

/** Errors in the provider's own shape, so that the agent's client understands them. */
function refuse(
  response: ServerResponse,
  provider: Provider | undefined,
  status: number,
  message: string,
  headers: Record<string, string> = {},
): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const body = provider ? provider.errorBody(status, message) : { type: 'error', error: { type: 'error', message } }
  answerJson(response, status, body, headers)
}

function answerJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

const reasonWords: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its name cannot be resolved',
  EAI_AGAIN: 'its name cannot be resolved at the moment',
  ECONNREFUSED: 'it refuses connections',
  ETIMEDOUT: 'it does not answer',
  ECONNRESET: 'it closed the connection',
}

/** Names host and reason, for the agent's own error and for the event of the call. */
function unreachableWords({ host }: URL, error: unknown): string {
  const { code = '' } = error as NodeJS.ErrnoException
  return `the model provider at ${host} could not be reached: ${reasonWords[code] ?? messageOf(error)}`
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
