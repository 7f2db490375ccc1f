import { eventText, openEvents, sendJson, type WireApi } from './wire-api.js'

interface Body {
  model?: string
  stream?: boolean
  tools?: unknown[]
  messages?: { role: string }[]
}

/** OpenAI's Chat Completions API. */
export const chatCompletions: WireApi = {
  matches: (path) => path.endsWith('/chat/completions'),
  isSideQuestion: ({ tools }: Body) => !tools?.length,
  turnOf: ({ messages = [] }: Body) =>
    messages.filter(({ role }, index) => role === 'tool' && messages[index + 1]?.role !== 'tool').length,
  speak(response, { body, blocks, turn, usage }) {
    const { model, stream } = body as Body
    const base = { id: `chat_${turn}`, object: 'chat.completion.chunk', created: 1, model }
    const counts = {
      prompt_tokens: usage.input,
      completion_tokens: usage.output,
      total_tokens: usage.input + usage.output,
    }
    const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
    const calls = blocks
      .filter((block) => block.type === 'tool_use')
      .map((block, index) => ({
        index,
        id: `call_${turn}_${index}`,
        type: 'function',
        function: { name: block.name, arguments: JSON.stringify(block.input) },
      }))
    const reason = calls.length > 0 ? 'tool_calls' : 'stop'
    if (!stream) {
      const message = { role: 'assistant', content: text, ...(calls.length > 0 ? { tool_calls: calls } : {}) }
      sendJson(response, 200, {
        ...base,
        object: 'chat.completion',
        choices: [{ index: 0, message, finish_reason: reason }],
        usage: counts,
      })
      return
    }
    const send = openEvents(response)
    const chunk = (delta: object, finish: string | null = null): void =>
      send({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] })
    chunk({ role: 'assistant', content: '' })
    if (text !== '') chunk({ content: text })
    for (const call of calls) chunk({ tool_calls: [call] })
    chunk({}, reason)
    send({ ...base, choices: [], usage: counts })
    response.end('data: [DONE]\n\n')
  },
  beginning: () =>
    eventText({
      id: 'chat_cut',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'cut',
      choices: [{ index: 0, delta: { role: 'assistant', content: 'half an answer' }, finish_reason: null }],
    }),
  errorBody: (status) => ({ error: { message: `scripted ${status}`, type: 'server_error', code: null, param: null } }),
}
