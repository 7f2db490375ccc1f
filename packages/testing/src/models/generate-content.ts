import { eventText, openEvents, sendJson, type WireApi } from './wire-api.js'

interface Body {
  tools?: unknown[]
  contents?: { role?: string; parts?: object[] }[]
}

/** Google's Gemini API. */
export const generateContent: WireApi = {
  matches: (path) => /:(streamG|g)enerateContent$/.test(path),
  isSideQuestion: ({ tools }: Body) => !tools?.length,
  turnOf: ({ contents = [] }: Body) =>
    contents.filter(({ parts = [] }) => parts.some((part) => 'functionResponse' in part)).length,
  speak(response, { blocks, usage }) {
    const parts = blocks.map((block) =>
      block.type === 'text' ? { text: block.text } : { functionCall: { name: block.name, args: block.input } },
    )
    const answer = {
      candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
      usageMetadata: {
        promptTokenCount: usage.input,
        candidatesTokenCount: usage.output,
        totalTokenCount: usage.input + usage.output,
      },
      modelVersion: 'scripted',
    }
    if (!response.req.url?.includes(':stream')) return sendJson(response, 200, answer)
    openEvents(response)(answer)
    response.end()
  },
  beginning: () => eventText({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'half' }] } }] }),
  errorBody: (status) => ({
    error: {
      code: status,
      message: `scripted ${status}`,
      status: { 429: 'RESOURCE_EXHAUSTED', 503: 'UNAVAILABLE' }[status] ?? 'INTERNAL',
    },
  }),
}
