import type { ModelPrice, PriceTable } from '../model-price.js'

/** Writing to the cache costs what sending costs. */
const price = (asOf: string, input: number, output: number, cacheRead: number): ModelPrice => ({
  asOf,
  input,
  output,
  cacheRead,
  cacheWrite: input,
})

/** List prices by model name without date. */
export const openaiPrices: PriceTable = {
  'gpt-5.1': price('2025-11-13', 1.25, 10, 0.125),
  'gpt-5.1-codex': price('2025-11-13', 1.25, 10, 0.125),
  'gpt-5.1-codex-mini': price('2025-11-13', 0.25, 2, 0.025),
  'gpt-5': price('2025-08-07', 1.25, 10, 0.125),
  'gpt-5-codex': price('2025-09-23', 1.25, 10, 0.125),
  'gpt-5-mini': price('2025-08-07', 0.25, 2, 0.025),
  'gpt-5-nano': price('2025-08-07', 0.05, 0.4, 0.005),
  'gpt-4.1': price('2025-04-14', 2, 8, 0.5),
  'gpt-4.1-mini': price('2025-04-14', 0.4, 1.6, 0.1),
  'gpt-4o': price('2024-08-06', 2.5, 10, 1.25),
  'gpt-4o-mini': price('2024-07-18', 0.15, 0.6, 0.075),
  o3: price('2025-06-10', 2, 8, 0.5),
  'o4-mini': price('2025-04-16', 1.1, 4.4, 0.275),
}
