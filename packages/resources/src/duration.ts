/** Durations as Go writes them: `1h30m0s`, `250ms`, `-1.5s`. Carried as whole nanoseconds. */

const UNIT_NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}

const LIMIT = 2n ** 63n

/** Nanoseconds, or undefined when Go's `time.ParseDuration` refuses the text. */
export function parseGoDuration(text: string): bigint | undefined {
  const negative = text.startsWith('-')
  const body = /^[+-]/.test(text) ? text.slice(1) : text
  if (body === '0') return 0n
  if (!/^((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(body)) return undefined
  let total = 0n
  for (const [, number = '', unit = ''] of body.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    const scale = UNIT_NANOSECONDS[unit] ?? 0n
    const [whole = '', fraction = ''] = number.split('.')
    total += BigInt(whole || '0') * scale
    if (fraction) total += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length)
  }
  if (total > LIMIT || (total === LIMIT && !negative)) return undefined
  return negative ? -total : total
}

/** Go's `Duration.String`. */
export function formatGoDuration(nanoseconds: bigint): string {
  if (nanoseconds === 0n) return '0s'
  const sign = nanoseconds < 0n ? '-' : ''
  const value = nanoseconds < 0n ? -nanoseconds : nanoseconds
  if (value < 1_000n) return `${sign}${value}ns`
  if (value < 1_000_000n) return `${sign}${decimal(value, 1_000n)}µs`
  if (value < 1_000_000_000n) return `${sign}${decimal(value, 1_000_000n)}ms`
  const minutes = value / 60_000_000_000n
  const seconds = `${decimal(value % 60_000_000_000n, 1_000_000_000n)}s`
  if (minutes === 0n) return sign + seconds
  const hours = minutes / 60n
  return hours === 0n ? `${sign}${minutes}m${seconds}` : `${sign}${hours}h${minutes % 60n}m${seconds}`
}

/** Milliseconds as Go would print them, for messages that carry a duration. */
export function formatMilliseconds(milliseconds: number): string {
  return formatGoDuration(BigInt(Math.round(milliseconds * 1e6)))
}

function decimal(value: bigint, scale: bigint): string {
  const digits = scale.toString().length - 1
  const fraction = (value % scale).toString().padStart(digits, '0').replace(/0+$/, '')
  return fraction ? `${value / scale}.${fraction}` : `${value / scale}`
}
