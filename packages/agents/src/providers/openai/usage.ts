import { asArray, asCount, asObject, asString, type JsonObject } from '../../json-value.js'
import { lengthOf, type Metered, type UsageReader } from '../usage-meter.js'

/** The Responses API: the counts come with the last event. Cached tokens are part of the input; we count them apart. */
export const readResponsesUsage: UsageReader = (event, state) => {
  const type = asString(event.type) ?? ''
  if (type.endsWith('.delta')) state.outputCharacters += lengthOf(event.delta)
  // Without streaming the response is the document itself.
  const response = asObject(event.response) ?? (event.object === 'response' ? event : undefined)
  state.model = asString(response?.model) ?? state.model
  const usage = asObject(response?.usage)
  if (!usage) return
  count(state, {
    input: usage.input_tokens,
    cached: asObject(usage.input_tokens_details)?.cached_tokens,
    output: usage.output_tokens,
  })
}

/** Chat Completions: the counts come with the last chunk, where the client asked for them. */
export const readChatUsage: UsageReader = (chunk, state) => {
  state.model = asString(chunk.model) ?? state.model
  for (const choice of asArray(chunk.choices)) state.outputCharacters += deltaLength(asObject(choice))
  const usage = asObject(chunk.usage)
  if (!usage) return
  count(state, {
    input: usage.prompt_tokens,
    cached: asObject(usage.prompt_tokens_details)?.cached_tokens,
    output: usage.completion_tokens,
  })
}

function deltaLength(choice: JsonObject | undefined): number {
  const delta = asObject(choice?.delta) ?? asObject(choice?.message)
  const calls = asArray(delta?.tool_calls).map((call) => lengthOf(asObject(asObject(call)?.function)?.arguments))
  return lengthOf(delta?.content) + lengthOf(delta?.reasoning_content) + calls.reduce((sum, length) => sum + length, 0)
}

function count(state: Metered, { input, cached, output }: { input: unknown; cached: unknown; output: unknown }): void {
  state.usage = {
    ...(state.model ? { model: state.model } : {}),
    inputTokens: Math.max(0, asCount(input) - asCount(cached)),
    outputTokens: asCount(output),
    cacheReadTokens: Math.min(asCount(cached), asCount(input)),
    cacheWriteTokens: 0,
  }
  state.isFinal = true
}
