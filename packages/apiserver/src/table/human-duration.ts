const SECONDS_PER_MINUTE = 60
const MINUTES_PER_HOUR = 60
const HOURS_PER_DAY = 24
const HOURS_PER_YEAR = 24 * 365

/** A duration as kubectl shows ages: two units while the first is small, one afterwards (`5m3s`, `42m`, `3h5m`, `9d`). */
export function humanDuration(durationMs: number): string {
  const seconds = Math.trunc(durationMs / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 2 * SECONDS_PER_MINUTE) return `${seconds}s`
  const minutes = Math.trunc(seconds / SECONDS_PER_MINUTE)
  if (minutes < 10) return twoUnits(minutes, 'm', seconds % SECONDS_PER_MINUTE, 's')
  if (minutes < 3 * MINUTES_PER_HOUR) return `${minutes}m`
  const hours = Math.trunc(minutes / MINUTES_PER_HOUR)
  if (hours < 8) return twoUnits(hours, 'h', minutes % MINUTES_PER_HOUR, 'm')
  if (hours < 2 * HOURS_PER_DAY) return `${hours}h`
  const days = Math.trunc(hours / HOURS_PER_DAY)
  if (hours < 8 * HOURS_PER_DAY) return twoUnits(days, 'd', hours % HOURS_PER_DAY, 'h')
  if (hours < 2 * HOURS_PER_YEAR) return `${days}d`
  const years = Math.trunc(hours / HOURS_PER_YEAR)
  if (hours < 8 * HOURS_PER_YEAR) return twoUnits(years, 'y', days % 365, 'd')
  return `${years}y`
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`
}

/** The age of a timestamp, `<unknown>` where there is none. */
export function ageOf(timestamp: string | null | undefined, now: Date): string {
  if (!timestamp) return '<unknown>'
  const at = Date.parse(timestamp)
  return Number.isNaN(at) ? '<unknown>' : humanDuration(now.getTime() - at)
}
