const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const

/** `25m`, `3h`, `2d`: how long ago, for a column. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const unit = units.find(([, size]) => seconds >= size)
  return unit ? `${Math.floor(seconds / unit[1])}${unit[0]}` : `${seconds}s`
}

/** `11 m 38 s`, `1 h 0 m`, `5.4 s`: how long something took. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms / 1000)
  if (seconds < 10) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`
  const whole = Math.floor(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, '0')} s`
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} m`
}

/** Money with as many places as it needs: `$0.0042`, `$0.12`, `$12.30`. */
export const money = (usd: number): string => `$${usd !== 0 && usd < 0.01 ? usd.toFixed(4) : usd.toFixed(2)}`

/** `1,234`, `56.7k`, `3.2M`: tokens for a column. */
export function count(value: number): string {
  if (value < 10_000) return value.toLocaleString('en-US')
  return value < 1_000_000 ? `${(value / 1000).toFixed(1)}k` : `${(value / 1_000_000).toFixed(1)}M`
}

/** "1 file", "4 files". */
export function files(value: number): string {
  return `${value} ${value === 1 ? 'file' : 'files'}`
}
