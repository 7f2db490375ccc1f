import type { ModelPrice, PriceTable } from '../model-price.js'

/** Prices for text; storing a cache is charged by the hour, which no single call shows. */
const price = (asOf: string, input: number, output: number): ModelPrice => ({
  asOf,
  input,
  output,
  cacheRead: input / 10,
  cacheWrite: input,
})

/** List prices by model name without date. */
export const googlePrices: PriceTable = {
  'gemini-3-pro-preview': {
    ...price('2025-11-18', 2, 12),
    long: { aboveInputTokens: 200_000, input: 4, output: 18 },
  },
  'gemini-2.5-pro': { ...price('2025-06-17', 1.25, 10), long: { aboveInputTokens: 200_000, input: 2.5, output: 15 } },
  'gemini-2.5-flash': price('2025-06-17', 0.3, 2.5),
  'gemini-2.5-flash-lite': price('2025-07-22', 0.1, 0.4),
}
