import type { ModelPrice, PriceTable } from '../model-price.js'

const price = (asOf: string, input: number, output: number): ModelPrice => ({
  asOf,
  input,
  output,
  cacheRead: input / 10,
  cacheWrite: input * 1.25,
})

/** List prices by model name without date. */
export const anthropicPrices: PriceTable = {
  'claude-opus-4-8': price('2026-11-15', 5, 25),
  'claude-opus-4-5': price('2025-11-24', 5, 25),
  'claude-opus-4-1': price('2025-08-05', 15, 75),
  'claude-opus-4': price('2025-05-22', 15, 75),
  'claude-sonnet-4-5': {
    ...price('2025-09-29', 3, 15),
    long: { aboveInputTokens: 200_000, input: 6, output: 22.5 },
  },
  'claude-sonnet-4': price('2025-05-22', 3, 15),
  'claude-haiku-4-5': price('2025-10-15', 1, 5),
  'claude-3-5-haiku': price('2024-12-03', 0.8, 4),
}
