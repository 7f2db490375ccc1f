import { asArray, asCount, asObject } from '../../json-value.js'
import { lengthOf, type UsageReader } from '../usage-meter.js'

/** `generateContent` and its stream: every chunk may carry counts so far; the chunk with a finish reason has them all. */
export const readGenerateUsage =
  (model: string | undefined): UsageReader =>
  (chunk, state) => {
    state.model = model
    let isLast = false
    for (const entry of asArray(chunk.candidates)) {
      const candidate = asObject(entry)
      if (candidate?.finishReason !== undefined) isLast = true
      for (const part of asArray(asObject(candidate?.content)?.parts)) state.outputCharacters += partLength(part)
    }
    const usage = asObject(chunk.usageMetadata)
    if (!usage) return
    const cached = Math.min(asCount(usage.cachedContentTokenCount), asCount(usage.promptTokenCount))
    state.usage = {
      ...(model ? { model } : {}),
      inputTokens: asCount(usage.promptTokenCount) - cached + asCount(usage.toolUsePromptTokenCount),
      outputTokens: asCount(usage.candidatesTokenCount) + asCount(usage.thoughtsTokenCount),
      cacheReadTokens: cached,
      cacheWriteTokens: 0,
    }
    // A chunk of counts alone closes a stream, too.
    if (isLast || asArray(chunk.candidates).length === 0) state.isFinal = true
  }

function partLength(value: unknown): number {
  const part = asObject(value)
  const call = asObject(part?.functionCall)
  return lengthOf(part?.text) + (call ? JSON.stringify(call.args ?? {}).length : 0)
}
