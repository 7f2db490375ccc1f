/** Times as Kubernetes writes them. `Time` has seconds, `MicroTime` six decimals, both in UTC. */

export function formatTime(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`
}

export function formatMicroTime(time: Date): string {
  return `${time.toISOString().slice(0, 23)}000Z`
}

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2})$/

/** Whether the text is an RFC 3339 time as Go writes it: a real calendar date, upper case, an offset, seconds below 60. */
export function isTime(text: string): boolean {
  const match = RFC3339.exec(text)
  if (!match) return false
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  const daysInMonth = new Date(Date.UTC(2000, month, 0)).getUTCDate()
  const leapDays = month === 2 && !isLeapYear(year) ? 1 : 0
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth - leapDays) return false
  return hour < 24 && minute < 60 && second < 60 && isOffset(match[8] ?? '')
}

/** The instant, or undefined when the text is no RFC 3339 time. Fractions below a millisecond are cut off. */
export function parseTime(text: string | undefined): Date | undefined {
  return text !== undefined && isTime(text) ? new Date(Date.parse(text)) : undefined
}

function isLeapYear(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
}

function isOffset(text: string): boolean {
  if (text.length === 1) return true
  return Number(text.slice(1, 3)) < 24 && Number(text.slice(4, 6)) < 60
}
