/** What a million tokens cost, in US dollars, on the day it was looked up. */
export interface ModelPrice {
  readonly asOf: string
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** Other prices for a call that sends more than this. */
  readonly long?: { readonly aboveInputTokens: number; readonly input: number; readonly output: number } | undefined
}

/** By model name without date. */
export type PriceTable = Readonly<Record<string, ModelPrice>>

export interface TokenCounts {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

/** The cost of one call in US dollars, or undefined where the model's price is not known. */
export function costOf(usage: TokenCounts, model: string, prices: PriceTable): number | undefined {
  const name = [model, baseModelName(model)].find((candidate) => Object.hasOwn(prices, candidate))
  const price = name === undefined ? undefined : prices[name]
  if (!price) return undefined
  const sent = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
  const long = price.long && sent > price.long.aboveInputTokens ? price.long : undefined
  // Cached tokens keep their share of the price of fresh ones.
  const factor = long ? long.input / price.input : 1
  const micros =
    usage.inputTokens * price.input * factor +
    usage.outputTokens * (long?.output ?? price.output) +
    usage.cacheReadTokens * price.cacheRead * factor +
    usage.cacheWriteTokens * price.cacheWrite * factor
  return Math.round(micros) / 1_000_000
}

/** `claude-sonnet-4-5-20250929[1m]`, `gpt-5-2025-08-07` and `models/gemini-2.5-pro-latest` without what changes. */
function baseModelName(model: string): string {
  return model
    .replace(/^models\//, '')
    .replace(/\[[^\]]*\]$/, '')
    .replace(/-latest$/, '')
    .replace(/-20\d{2}-?\d{2}-?\d{2}$/, '')
}
