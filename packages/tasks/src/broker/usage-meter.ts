/** Tokens as a provider counts them. */
export interface TokenUsage {
  model?: string
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
}

function noUsage(): TokenUsage {
  return { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
}

/** Watches one reply go by and says at the end what it cost. Never changes or delays a byte. */
export interface UsageMeter {
  push(chunk: Uint8Array): void
  end(): TokenUsage | undefined
}

const maxLineBytes = 256 * 1024
const maxBodyBytes = 4 * 1024 * 1024

/** The meter for a Messages reply: server-sent events or one JSON document, by content type. */
export function anthropicMeter(contentType: string): UsageMeter {
  return contentType.includes('text/event-stream') ? eventStreamMeter() : jsonMeter()
}

function eventStreamMeter(): UsageMeter {
  const decoder = new TextDecoder()
  let pending = ''
  let seen: TokenUsage | undefined
  const line = (text: string): void => {
    if (!text.startsWith('data:')) return
    const event = parseJson(text.slice(5)) as { type?: string; message?: unknown; usage?: unknown } | undefined
    if (event?.type === 'message_start') seen = merge(seen, event.message)
    else if (event?.type === 'message_delta') seen = merge(seen, event)
  }
  return {
    push(chunk) {
      pending += decoder.decode(chunk, { stream: true })
      const lines = pending.split('\n')
      pending = lines.pop() ?? ''
      if (pending.length > maxLineBytes) pending = ''
      for (const text of lines) line(text)
    },
    end() {
      line(pending)
      return seen
    },
  }
}

function jsonMeter(): UsageMeter {
  const chunks: Uint8Array[] = []
  let size = 0
  return {
    push(chunk) {
      size += chunk.length
      if (size <= maxBodyBytes) chunks.push(chunk)
    },
    end() {
      return size <= maxBodyBytes ? merge(undefined, parseJson(Buffer.concat(chunks).toString('utf8'))) : undefined
    },
  }
}

/** Counts in later events of one message replace earlier ones: the provider reports running totals. */
function merge(before: TokenUsage | undefined, message: unknown): TokenUsage | undefined {
  if (typeof message !== 'object' || message === null) return before
  const { model, usage } = message as { model?: unknown; usage?: Record<string, unknown> }
  if (typeof usage !== 'object' || usage === null) return before
  const base = before ?? noUsage()
  const count = (name: string, fallback: number): number => {
    const value = usage[name]
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : fallback
  }
  const named = typeof model === 'string' ? model : base.model
  return {
    ...(named ? { model: named } : {}),
    inputTokens: count('input_tokens', base.inputTokens),
    outputTokens: count('output_tokens', base.outputTokens),
    cacheReadTokens: count('cache_read_input_tokens', base.cacheReadTokens),
    cacheWriteTokens: count('cache_creation_input_tokens', base.cacheWriteTokens),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
