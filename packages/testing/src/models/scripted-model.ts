import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chatCompletions } from './chat-completions.js'
import { generateContent } from './generate-content.js'
import { messages } from './messages.js'
import { responses } from './responses.js'

/** What the model says in one turn. */
export type ModelBlock =
  | { type: 'text'; text: string }
  | {
      type: 'tool_use'
      name: string
      input: Readonly<Record<string, unknown>>
      /** Where the tool is one of a group of tools, as the Responses API has them. */
      namespace?: string
    }

export interface ModelRequest {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: unknown
}

export type ModelUsage = { input: number; output: number }

/** How one wire API is spoken. */
export interface WireApi {
  matches(path: string): boolean
  /** Requests without tools are the client's side questions and do not advance the script. */
  isSideQuestion(body: never): boolean
  /** How many turns of the script the history already holds: each ended with the results of its tools. */
  turnOf(body: never): number
  speak(
    response: ServerResponse,
    answer: { body: never; blocks: readonly ModelBlock[]; turn: number; usage: ModelUsage },
  ): void
  /** The beginning of an answer, for one that breaks off. */
  beginning(usage: ModelUsage): string
  errorBody(status: number): object
}

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

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** Starts server-sent events; answers how to send one, with its name where the API has names. */
export function openEvents(response: ServerResponse): (data: object, name?: string) => void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  return (data, name) => void response.write(eventText(data, name))
}

export const eventText = (data: object, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`
