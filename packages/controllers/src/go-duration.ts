/** Durations as Go writes and reads them (`5m0s`, `1h0m0s`, `250ms`): flags and event notes use that form. */

const unitMs: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/** Milliseconds, or undefined for what is no duration. A bare number is none, except 0. */
export function parseDuration(text: string): number | undefined {
  const match = /^([+-]?)(.+)$/.exec(text)
  if (!match?.[2]) return undefined
  const sign = match[1] === '-' ? -1 : 1
  if (match[2] === '0') return 0
  let restAt = 0
  let totalMs = 0
  const part = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y
  while (restAt < match[2].length) {
    part.lastIndex = restAt
    const found = part.exec(match[2])
    if (!found) return undefined
    totalMs += Number(found[1]) * (unitMs[found[2] ?? ''] ?? 0)
    restAt = part.lastIndex
  }
  return sign * totalMs
}

export function formatDuration(ms: number): string {
  if (ms === 0) return '0s'
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (ms < 1000) return `${trim(ms)}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor((ms % 3_600_000) / 60_000)
  const seconds = trim((ms % 60_000) / 1000)
  if (hours > 0) return `${hours}h${minutes}m${seconds}s`
  return minutes > 0 ? `${minutes}m${seconds}s` : `${seconds}s`
}

function trim(value: number): string {
  return String(Number(value.toFixed(9)))
}
