import { eventText, openEvents, sendJson, type WireApi } from './wire-api.js'

interface Body {
  model?: string
  stream?: boolean
  tools?: unknown[]
  messages?: { role: string; content: unknown }[]
}

/** Anthropic's Messages API. */
export const messages: WireApi = {
  matches: (path) => path === '/v1/messages',
  isSideQuestion: ({ tools }: Body) => !tools?.length,
  turnOf: ({ messages: history = [] }: Body) =>
    history.filter(
      ({ role, content }) =>
        role === 'user' &&
        Array.isArray(content) &&
        content.some((block) => (block as { type?: string }).type === 'tool_result'),
    ).length,
  speak(response, { body, blocks, turn, usage }) {
    const { model, stream } = body as Body
    const stopReason = blocks.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn'
    const content = blocks.map((block, index) =>
      block.type === 'text' ? block : { ...block, id: `toolu_${turn}_${index}` },
    )
    const counts = { input_tokens: usage.input, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
    const message = { id: `msg_${turn}`, type: 'message', role: 'assistant', model, stop_sequence: null }
    if (!stream) {
      const total = { ...counts, output_tokens: usage.output }
      sendJson(response, 200, { ...message, content, stop_reason: stopReason, usage: total })
      return
    }
    const sendEvent = openEvents(response)
    const send = (type: string, data: object): void => sendEvent({ type, ...data }, type)
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
  },
  beginning: (usage) =>
    eventText(
      {
        type: 'message_start',
        message: {
          id: 'msg_cut',
          type: 'message',
          role: 'assistant',
          model: 'cut',
          content: [],
          stop_reason: null,
          usage: { input_tokens: usage.input, output_tokens: 1 },
        },
      },
      'message_start',
    ),
  errorBody: (status) => ({
    type: 'error',
    error: {
      type: { 429: 'rate_limit_error', 529: 'overloaded_error' }[status] ?? 'api_error',
      message: `scripted ${status}`,
    },
  }),
}
