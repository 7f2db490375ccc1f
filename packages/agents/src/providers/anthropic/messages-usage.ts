import { asObject, asString } from '../../json-value.js'
import { countOr, lengthOf, type Metered, type UsageReader } from '../usage-meter.js'

/** The Messages API: counts come with the start of a message and, as running totals, with its deltas. */
export const readMessagesUsage: UsageReader = (event, state) => {
  switch (event.type) {
    case 'message_start':
      return merge(state, asObject(event.message))
    case 'content_block_delta': {
      const delta = asObject(event.delta)
      state.outputCharacters += lengthOf(delta?.text) + lengthOf(delta?.thinking) + lengthOf(delta?.partial_json)
      return
    }
    case 'message_delta':
      merge(state, event)
      state.isFinal = state.usage !== undefined
      return
    case 'message':
      return merge(state, event)
    default:
      return
  }
}

function merge(state: Metered, message: Readonly<Record<string, unknown>> | undefined): void {
  const usage = asObject(message?.usage)
  if (!usage) return
  const before = state.usage
  const model = asString(message?.model) ?? before?.model
  state.usage = {
    ...(model ? { model } : {}),
    inputTokens: countOr(usage.input_tokens, before?.inputTokens ?? 0),
    outputTokens: countOr(usage.output_tokens, before?.outputTokens ?? 0),
    cacheReadTokens: countOr(usage.cache_read_input_tokens, before?.cacheReadTokens ?? 0),
    cacheWriteTokens: countOr(usage.cache_creation_input_tokens, before?.cacheWriteTokens ?? 0),
  }
}
