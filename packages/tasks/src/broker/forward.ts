import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { type HeaderRecord, type Provider, settleUsage } from '@corral/agents'
import type { FinishedCall } from './model-call.js'
import { retryAfterMs } from './provider-holds.js'
import type { RequestBody } from './request-body.js'

export interface ForwardedCall {
  request: IncomingMessage
  response: ServerResponse
  body: RequestBody
  provider: Provider
  /** Where the request goes, its path and query included. */
  target: URL
  headers: HeaderRecord
  path: string
  agents: UpstreamAgents
  patience: Patience
  /** Called whenever the provider is too busy to answer, with the time until the next try. */
  onBusy(waitMs: number): void
  now(): number
}

export interface Patience {
  /** How long a call waits in all for a provider that is busy. Clients give up after about five minutes. */
  maxWaitMs: number
  /** The first wait where the provider names none; it doubles. */
  firstWaitMs: number
  /** How long an answer is read on after the agent hung up, so that its count is known. */
  drainMs: number
}

export const defaultPatience: Patience = { maxWaitMs: 240_000, firstWaitMs: 1_000, drainMs: 15_000 }
const maxPauseMs = 60_000
const silenceMs = 10 * 60_000
const maxErrorBodyBytes = 64 * 1024

/** Connections to providers are kept: a new one costs two to four round trips before the first byte. */
export interface UpstreamAgents {
  http: HttpAgent
  https: HttpsAgent
  destroy(): void
}

export function createUpstreamAgents(): UpstreamAgents {
  const http = new HttpAgent({ keepAlive: true, maxFreeSockets: 64, scheduling: 'lifo' })
  const https = new HttpsAgent({ keepAlive: true, maxFreeSockets: 64, scheduling: 'lifo' })
  return {
    http,
    https,
    destroy() {
      http.destroy()
      https.destroy()
    },
  }
}

/**
 * Passes one request on and its answer back, byte for byte as they come. A provider that is busy is asked again as it
 * wishes. Answers when the call is over and counted, which may be after the agent hung up. Rejects where no answer came.
 */
export async function forward(call: ForwardedCall): Promise<FinishedCall> {
  const startedMs = call.now()
  const waitUntilMs = startedMs + call.patience.maxWaitMs
  for (let retries = 0; ; retries += 1) {
    const reply = await reach(call, retries === 0 ? undefined : call.body.replay())
    const errorBody = mayBeBusy(reply) ? await readBody(reply) : undefined
    if (errorBody === undefined) {
      const counted = await passOn(call, reply, startedMs)
      return { ...counted, provider: call.provider, retries, durationMs: call.now() - startedMs }
    }
    const status = reply.statusCode ?? 502
    if (call.provider.isOverloaded(status, errorBody.toString('utf8'))) {
      const asked = retryAfterMs(reply.headers, errorBody.toString('utf8'), call.now())
      const pauseMs = asked ?? Math.min(maxPauseMs, call.patience.firstWaitMs * 2 ** retries)
      call.onBusy(pauseMs)
      const isWorthIt = call.now() + pauseMs <= waitUntilMs && (await call.body.complete)
      if (isWorthIt && call.body.replay() && (await pause(pauseMs, call.response))) continue
    }
    answer(call.response, reply, errorBody)
    return {
      provider: call.provider,
      status,
      durationMs: call.now() - startedMs,
      retries,
      model: call.body.model,
      error: `the provider answered with ${status}`,
    }
  }
}

/** A kept connection that the provider closed before it answered; the request may not have reached it. */
class StaleConnectionError extends Error {}

/**
 * Providers close connections that are quiet, and one may be closed while a request is on its way. Such a request is sent
 * once more, over a connection of its own. One that a new connection broke off under is not: it may be under way there.
 */
async function reach(call: ForwardedCall, body: Buffer | undefined): Promise<IncomingMessage> {
  try {
    return await send(call, body, call.agents)
  } catch (error) {
    if (!(error instanceof StaleConnectionError)) throw error
    // The connection that broke off took the request's flow with it.
    call.request.resume()
    const isWhole = await call.body.complete
    const again = isWhole && !call.response.destroyed ? call.body.replay() : undefined
    if (!again) throw error.cause
    return send(call, again, undefined)
  }
}

function send(
  call: ForwardedCall,
  body: Buffer | undefined,
  agents: UpstreamAgents | undefined,
): Promise<IncomingMessage> {
  const { target, request, response } = call
  const isTls = target.protocol === 'https:'
  return new Promise((resolve, reject) => {
    const options = { method: request.method ?? 'GET', headers: call.headers, timeout: silenceMs }
    const upstream: ClientRequest = isTls
      ? httpsRequest(target, { ...options, agent: agents?.https ?? false })
      : httpRequest(target, { ...options, agent: agents?.http ?? false })
    // Nothing was answered yet: there is nothing to count, so the call is given up with the agent's connection.
    const onGone = (): void => void upstream.destroy(new Error('the agent hung up'))
    response.once('close', onGone)
    upstream.once('response', (reply) => {
      response.off('close', onGone)
      resolve(reply)
    })
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      response.off('close', onGone)
      const isStale = upstream.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
      reject(isStale ? new StaleConnectionError('the provider closed the connection', { cause: error }) : error)
    })
    upstream.on('timeout', () => upstream.destroy(new Error('the model provider sent nothing for ten minutes')))
    if (body) upstream.end(body)
    else request.pipe(upstream)
  })
}

const mayBeBusy = ({ statusCode }: IncomingMessage): boolean =>
  statusCode === 429 || statusCode === 503 || statusCode === 529

async function readBody(reply: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of reply as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size <= maxErrorBodyBytes) chunks.push(chunk)
    }
  } catch {
    // What came of it is enough: the status has been seen.
  }
  return Buffer.concat(chunks)
}

/** False where the agent hung up meanwhile. */
function pause(ms: number, response: ServerResponse): Promise<boolean> {
  if (response.destroyed) return Promise.resolve(false)
  return new Promise((resolve) => {
    const end = (isThere: boolean) => () => {
      clearTimeout(timer)
      response.off('close', onClose)
      resolve(isThere)
    }
    const timer = setTimeout(() => end(true)(), ms)
    const onClose = end(false)
    response.once('close', onClose)
  })
}

function answer(response: ServerResponse, reply: IncomingMessage, body: Buffer): void {
  if (response.destroyed) return
  const { 'transfer-encoding': _, connection: __, ...headers } = reply.headers
  response.writeHead(reply.statusCode ?? 502, { ...headers, 'content-length': body.length })
  response.end(body)
}

/** Streams an answer to the agent and counts it. Resolves when both sides are done with it. */
function passOn(
  call: ForwardedCall,
  reply: IncomingMessage,
  startedMs: number,
): Promise<Omit<FinishedCall, 'provider' | 'durationMs' | 'retries'>> {
  const { response, provider, patience, body } = call
  const status = reply.statusCode ?? 502
  const meter = provider.createMeter({ contentType: String(reply.headers['content-type'] ?? ''), path: call.path })
  let firstByteMs: number | undefined
  let drain: NodeJS.Timeout | undefined
  return new Promise((resolve) => {
    reply.on('data', (chunk: Buffer) => {
      firstByteMs ??= call.now() - startedMs
      meter.push(chunk)
    })
    response.once('close', () => {
      if (response.writableFinished || reply.closed) return
      // The agent hung up; what it asked for is charged all the same, so the rest is read to know how much.
      reply.unpipe(response)
      reply.resume()
      drain = setTimeout(() => reply.destroy(), patience.drainMs)
    })
    reply.once('error', () => undefined)
    reply.once('close', () => {
      clearTimeout(drain)
      // A connection that breaks in the middle breaks the agent's too: an end would look like a whole answer.
      if (!reply.complete && !response.destroyed) response.destroy()
      const isAnswer = status >= 200 && status < 300
      const settled = isAnswer ? settleUsage(meter.end(), { sentBytes: body.size, model: body.model }) : undefined
      resolve({
        status,
        firstByteMs,
        usage: settled?.usage,
        isEstimated: settled?.isEstimated,
        model: body.model,
        ...(isAnswer ? {} : { error: `the provider answered with ${status}` }),
        ...(isAnswer && !reply.complete ? { error: 'the answer broke off' } : {}),
      })
    })
    const { connection: _, 'keep-alive': __, ...headers } = reply.headers
    response.writeHead(status, headers)
    // The head alone tells the agent that the model has begun; without this it waits for the first bytes of the body.
    // Where those are here already they take the head along, one write instead of two.
    if (reply.readableLength === 0) response.flushHeaders()
    reply.pipe(response)
  })
}
