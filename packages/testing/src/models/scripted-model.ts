import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chatCompletions } from './chat-completions.js'
import { generateContent } from './generate-content.js'
import { messages } from './messages.js'
import { responses } from './responses.js'
import { type ModelBlock, type ModelRequest, type ModelUsage, sendJson, type WireApi } from './wire-api.js'

/** What happens instead of the answer to a turn. */
export type ModelFault = { status: number; retryAfterSeconds?: number } | 'cut'

export interface ScriptedModel extends AsyncDisposable {
  readonly url: string
  readonly requests: ModelRequest[]
  /** Tokens each answer reports. */
  readonly usage: ModelUsage
  /** Is asked before each turn is answered; what it promises is waited for. */
  hold(gate: ((turn: number) => Promise<void>) | undefined): void
  /** What to say from now on. */
  setScript(script: readonly (readonly ModelBlock[])[]): void
  /** Met by the next requests with tools, one each, before any is answered. */
  fail(...faults: ModelFault[]): void
}

const apis: readonly WireApi[] = [messages, responses, chatCompletions, generateContent]

/**
 * A model that speaks a script, in the Messages, Responses, Chat Completions and Gemini APIs. The turn is read off the
 * history of each request, so that a repeated request gets the same answer.
 */
export async function startScriptedModel(
  script: readonly (readonly ModelBlock[])[],
  { host = '127.0.0.1' }: { host?: string } = {},
): Promise<ScriptedModel> {
  const requests: ModelRequest[] = []
  const usage = { input: 12, output: 20 }
  const faults: ModelFault[] = []
  let spoken = script
  let gate: ((turn: number) => Promise<void>) | undefined

  const answer = async (request: ModelRequest, response: ServerResponse): Promise<void> => {
    const path = new URL(request.path, 'http://model').pathname
    if (request.method === 'HEAD' || path === '/') return void response.writeHead(200).end()
    if (path.endsWith('/count_tokens')) return sendJson(response, 200, { input_tokens: usage.input })
    if (path.endsWith(':countTokens')) return sendJson(response, 200, { totalTokens: usage.input })
    if (path.endsWith('/models')) return sendJson(response, 200, { object: 'list', data: [], models: [] })
    const api = apis.find((entry) => entry.matches(path))
    if (!api || request.method !== 'POST') return sendJson(response, 404, { error: { message: path } })
    const body = request.body as never
    const isSide = api.isSideQuestion(body)
    const fault = isSide ? undefined : faults.shift()
    if (fault) return meet(response, api, fault, usage)
    const turn = api.turnOf(body)
    if (!isSide) await gate?.(turn)
    const blocks = isSide ? sideAnswer : (spoken[Math.min(turn, spoken.length - 1)] ?? [])
    api.speak(response, { body, blocks, turn, usage })
  }

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      const request = {
        method: incoming.method ?? 'GET',
        path: incoming.url ?? '/',
        headers: incoming.headers,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      }
      requests.push(request)
      answer(request, response).catch((error: Error) => response.destroy(error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    requests,
    usage,
    hold(next) {
      gate = next
    },
    setScript(next) {
      spoken = next
    },
    fail: (...next) => void faults.push(...next),
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}

const sideAnswer: readonly ModelBlock[] = [{ type: 'text', text: '{"title":"ok"}' }]

function meet(response: ServerResponse, api: WireApi, fault: ModelFault, usage: ModelUsage): void {
  if (fault === 'cut') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(api.beginning(usage), () => setTimeout(() => response.destroy(), 20))
    return
  }
  const headers: Record<string, string> =
    fault.retryAfterSeconds === undefined ? {} : { 'retry-after': String(fault.retryAfterSeconds) }
  response.writeHead(fault.status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(api.errorBody(fault.status)))
}
