import { eventText, openEvents, type WireApi } from './wire-api.js'

interface Body {
  tools?: unknown[]
  input?: { type?: string; role?: string }[]
}

/** OpenAI's Responses API, streamed. */
export const responses: WireApi = {
  matches: (path) => path.endsWith('/responses'),
  isSideQuestion: ({ tools }: Body) => !tools?.length,
  // The results of one turn's calls follow each other; the next turn's calls come before its results.
  turnOf: ({ input = [] }: Body) =>
    input.filter(
      ({ type }, index) => /_call_output$/.test(type ?? '') && !/_call_output$/.test(input[index + 1]?.type ?? ''),
    ).length,
  speak(response, { blocks, turn, usage }) {
    const sendEvent = openEvents(response)
    const send = (type: string, data: object): void => sendEvent({ type, ...data }, type)
    const id = `resp_${turn}`
    send('response.created', { response: { id, object: 'response', status: 'in_progress', output: [] } })
    const items = blocks.map((block, index) =>
      block.type === 'text'
        ? {
            type: 'message',
            id: `msg_${turn}_${index}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: block.text, annotations: [] }],
          }
        : {
            type: 'function_call',
            id: `fc_${turn}_${index}`,
            call_id: `call_${turn}_${index}`,
            name: block.name,
            ...(block.namespace ? { namespace: block.namespace } : {}),
            arguments: JSON.stringify(block.input),
            status: 'completed',
          },
    )
    items.forEach((item, index) => {
      send('response.output_item.added', { output_index: index, item })
      send('response.output_item.done', { output_index: index, item })
    })
    send('response.completed', {
      response: {
        id,
        object: 'response',
        status: 'completed',
        output: items,
        usage: {
          input_tokens: usage.input,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: usage.output,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: usage.input + usage.output,
        },
      },
    })
    response.end()
  },
  beginning: () =>
    eventText({ type: 'response.output_text.delta', delta: 'half an answer' }, 'response.output_text.delta'),
  errorBody: (status) => ({ error: { message: `scripted ${status}`, type: 'server_error', code: null, param: null } }),
}
