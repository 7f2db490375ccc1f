/** A set of measurements in one figure each. */
export interface Summary {
  count: number
  min: number
  p50: number
  p90: number
  p99: number
  max: number
  mean: number
}

/** The value below which `share` (0 to 1) of the samples lie: nearest rank, so always one that was measured. */
export function percentile(samples: readonly number[], share: number): number {
  // 99 instead of 0.99 would quietly answer with the largest sample.
  if (!(share >= 0 && share <= 1)) throw new Error(`a share lies between 0 and 1, not at ${share}`)
  if (samples.length === 0) return Number.NaN
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN
}

export function median(samples: readonly number[]): number {
  return percentile(samples, 0.5)
}

export function summarize(samples: readonly number[]): Summary {
  const sum = samples.reduce((total, value) => total + value, 0)
  return {
    count: samples.length,
    min: percentile(samples, 0),
    p50: percentile(samples, 0.5),
    p90: percentile(samples, 0.9),
    p99: percentile(samples, 0.99),
    max: percentile(samples, 1),
    mean: sum / samples.length,
  }
}

/** Three significant digits are more than a shared machine can repeat. */
export function rounded(value: number): number {
  if (!Number.isFinite(value)) return value
  const digits = Math.max(0, 3 - Math.ceil(Math.log10(Math.abs(value) + 1e-9)))
  return Number(value.toFixed(Math.min(digits, 6)))
}

const keptSamples = 2_000

/** What goes into a result file: everything up to 2,000 samples, evenly picked beyond. */
export function keepSamples(samples: readonly number[]): number[] {
  const step = Math.max(1, samples.length / keptSamples)
  const kept: number[] = []
  for (let at = 0; at < samples.length; at += step) kept.push(rounded(samples[Math.floor(at)] ?? Number.NaN))
  return kept
}
