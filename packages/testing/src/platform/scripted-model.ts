import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What the model says in one turn. */
export type ModelBlock =
  | { type: 'text'; text: string }
  | { type: 'tool_use'; name: string; input: Readonly<Record<string, unknown>> }

export interface ModelRequest {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: unknown
}

export interface ScriptedModel extends AsyncDisposable {
  readonly url: string
  readonly requests: ModelRequest[]
  /** Tokens each answer reports. */
  readonly usage: { input: number; output: number }
  /** Is asked before each turn is answered; what it promises is waited for. */
  hold(gate: ((turn: number) => Promise<void>) | undefined): void
}

interface MessagesBody {
  model?: string
  stream?: boolean
  tools?: unknown[]
  messages?: { role: string; content: unknown }[]
}

/**
 * A Messages API that speaks a script. The turn is read off the history of each request, so that a repeated request
 * gets the same answer; requests without tools are the client's side questions and do not advance the script.
 */
export async function startScriptedModel(script: readonly (readonly ModelBlock[])[]): Promise<ScriptedModel> {
  const requests: ModelRequest[] = []
  const usage = { input: 12, output: 20 }
  let gate: ((turn: number) => Promise<void>) | undefined

  const answer = async (request: ModelRequest, response: ServerResponse): Promise<void> => {
    const path = new URL(request.path, 'http://model').pathname
    if (request.method === 'HEAD' || path === '/') return void response.writeHead(200).end()
    if (path === '/v1/messages/count_tokens') return json(response, 200, { input_tokens: usage.input })
    if (path !== '/v1/messages')
      return json(response, 404, { type: 'error', error: { type: 'not_found_error', message: path } })
    const body = request.body as MessagesBody
    const isSideQuestion = !body.tools?.length
    const turn = turnOf(body)
    if (!isSideQuestion) await gate?.(turn)
    const blocks: readonly ModelBlock[] = isSideQuestion
      ? [{ type: 'text', text: 'ok' }]
      : (script[Math.min(turn, script.length - 1)] ?? [])
    speak(response, body, blocks, turn, usage)
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    usage,
    hold(next) {
      gate = next
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}

/** How many turns of the script the history already holds: each ended with the results of its tools. */
function turnOf({ messages = [] }: MessagesBody): number {
  return messages.filter(
    ({ role, content }) =>
      role === 'user' &&
      Array.isArray(content) &&
      content.some((block) => (block as { type?: string }).type === 'tool_result'),
  ).length
}

function speak(
  response: ServerResponse,
  { model, stream }: MessagesBody,
  blocks: readonly ModelBlock[],
  turn: number,
  usage: { input: number; output: number },
): void {
  const stopReason = blocks.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn'
  const content = blocks.map((block, index) =>
    block.type === 'text' ? block : { ...block, id: `toolu_${turn}_${index}` },
  )
  const counts = { input_tokens: usage.input, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
  const message = { id: `msg_${turn}`, type: 'message', role: 'assistant', model, stop_sequence: null }
  if (!stream) {
    const total = { ...counts, output_tokens: usage.output }
    json(response, 200, { ...message, content, stop_reason: stopReason, usage: total })
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  const send = (type: string, data: object): void => {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
  }
  send('message_start', {
    message: { ...message, content: [], stop_reason: null, usage: { ...counts, output_tokens: 1 } },
  })
  content.forEach((block, index) => {
    const start = block.type === 'text' ? { type: 'text', text: '' } : { ...block, input: {} }
    const delta =
      block.type === 'text'
        ? { type: 'text_delta', text: block.text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
    send('content_block_start', { index, content_block: start })
    send('content_block_delta', { index, delta })
    send('content_block_stop', { index })
  })
  send('message_delta', {
    delta: { stop_reason: stopReason, stop_sequence: null },
    usage: { output_tokens: usage.output },
  })
  send('message_stop', {})
  response.end()
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
