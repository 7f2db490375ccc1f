import type { Usage } from '@corral/protocol'

/** What a million tokens cost, in US dollars, on the day it was looked up. */
export interface ModelPrice {
  readonly asOf: string
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

const price = (asOf: string, input: number, output: number): ModelPrice => ({
  asOf,
  input,
  output,
  cacheRead: input / 10,
  cacheWrite: input * 1.25,
})

/** List prices by model name without date. A model that is not here has no price, which is not the same as costing nothing. */
export const modelPrices: Readonly<Record<string, ModelPrice>> = {
  'claude-opus-4-8': price('2026-11-15', 5, 25),
  'claude-opus-4-5': price('2025-11-24', 5, 25),
  'claude-opus-4-1': price('2025-08-05', 15, 75),
  'claude-opus-4': price('2025-05-22', 15, 75),
  'claude-sonnet-4-5': price('2025-09-29', 3, 15),
  'claude-sonnet-4': price('2025-05-22', 3, 15),
  'claude-haiku-4-5': price('2025-10-15', 1, 5),
  'claude-3-5-haiku': price('2024-12-03', 0.8, 4),
}

type Counts = Pick<Usage, 'input_tokens' | 'output_tokens' | 'cache_read_tokens' | 'cache_write_tokens'>

/** The cost in US dollars, or undefined where the model's price is not known. */
export function costOf(usage: Counts, model: string): number | undefined {
  const name = baseModelName(model)
  if (!Object.hasOwn(modelPrices, name)) return undefined
  const { input, output, cacheRead, cacheWrite } = modelPrices[name]!
  const micros =
    usage.input_tokens * input +
    usage.output_tokens * output +
    usage.cache_read_tokens * cacheRead +
    usage.cache_write_tokens * cacheWrite
  return Math.round(micros) / 1_000_000
}

/** `claude-sonnet-4-5-20250929[1m]` and `claude-sonnet-4-5-latest` are `claude-sonnet-4-5`. */
function baseModelName(model: string): string {
  return model
    .replace(/\[[^\]]*\]$/, '')
    .replace(/-latest$/, '')
    .replace(/-20\d{6}$/, '')
}
