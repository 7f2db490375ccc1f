import { asCount, asObject, asString, type JsonObject } from '../json-value.js'

/** Tokens as a provider counts them. */
export interface TokenUsage {
  model?: string
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
}

/** What a meter has seen of one reply. */
export interface Metered {
  /** The last counts the provider reported. */
  usage: TokenUsage | undefined
  /** Whether those are the counts of the whole reply. */
  isFinal: boolean
  /** Characters of answer, reasoning and tool arguments, from which the rest can be estimated. */
  outputCharacters: number
  model?: string | undefined
}

/** Watches one reply go by and says at the end what it cost. Never changes or delays a byte. */
export interface UsageMeter {
  push(chunk: Uint8Array): void
  end(): Metered
}

export interface ReplyHead {
  readonly contentType: string
  /** The path of the request. */
  readonly path: string
}

/** What the messages of one wire API say about usage. Called with each event of a stream, or with the one document. */
export type UsageReader = (message: JsonObject, state: Metered) => void

const maxLineCharacters = 256 * 1024
const maxBodyBytes = 4 * 1024 * 1024

/** A meter for server-sent events and for one JSON document, by content type. */
export function createMeter(reply: ReplyHead, read: UsageReader): UsageMeter {
  const state: Metered = { usage: undefined, isFinal: false, outputCharacters: 0 }
  return reply.contentType.includes('text/event-stream') ? eventStreamMeter(read, state) : documentMeter(read, state)
}

function eventStreamMeter(read: UsageReader, state: Metered): UsageMeter {
  const decoder = new TextDecoder()
  let pending = ''
  const onLine = (text: string): void => {
    if (!text.startsWith('data:')) return
    const message = parse(text.slice(5))
    if (message) read(message, state)
  }
  return {
    push(chunk) {
      pending += decoder.decode(chunk, { stream: true })
      const lines = pending.split('\n')
      pending = lines.pop() ?? ''
      if (pending.length > maxLineCharacters) pending = ''
      for (const line of lines) onLine(line)
    },
    end() {
      onLine(pending)
      return state
    },
  }
}

function documentMeter(read: UsageReader, state: Metered): UsageMeter {
  const chunks: Uint8Array[] = []
  let size = 0
  return {
    push(chunk) {
      size += chunk.length
      if (size <= maxBodyBytes) chunks.push(chunk)
    },
    end() {
      const message = size <= maxBodyBytes ? parse(Buffer.concat(chunks).toString('utf8')) : undefined
      if (message) read(message, state)
      if (state.usage) state.isFinal = true
      return state
    },
  }
}

const charactersPerToken = 4

/**
 * What a call cost: the provider's counts where it told them all, else an estimate from what went through. Undefined
 * where nothing was answered.
 */
export function settleUsage(
  { usage, isFinal, outputCharacters, model }: Metered,
  request: { sentBytes: number; model?: string | undefined },
): { usage: TokenUsage; isEstimated: boolean } | undefined {
  if (isFinal && usage) return { usage, isEstimated: false }
  if (!usage && outputCharacters === 0) return undefined
  const named = usage?.model ?? model ?? request.model
  return {
    isEstimated: true,
    usage: {
      inputTokens: usage?.inputTokens ?? Math.ceil(request.sentBytes / charactersPerToken),
      outputTokens: Math.max(usage?.outputTokens ?? 0, Math.ceil(outputCharacters / charactersPerToken)),
      cacheReadTokens: usage?.cacheReadTokens ?? 0,
      cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
      ...(named ? { model: named } : {}),
    },
  }
}

/** A count where the provider told one, else what was known before. */
export function countOr(value: unknown, before: number): number {
  return typeof value === 'number' ? asCount(value) : before
}

export function lengthOf(value: unknown): number {
  return asString(value)?.length ?? 0
}

function parse(text: string): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    // `[DONE]`, or something that is no message.
    return undefined
  }
}
