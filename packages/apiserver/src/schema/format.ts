import { isIP } from 'node:net'

type FormatCheck = (text: string) => boolean

const DATE_TIME = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/
const DURATION_TEXT = /^-?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*$/
const DURATION_WORDS = /^\d+\s*(ns|us|µs|ms|s|m|h|d|w|hour|day|week|minute|second|milli|micro|nano)\w*$/
const HOSTNAME = /^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/
const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i

/** Whether a date such as 2026-02-30 exists. */
function isDay(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1) return false
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
}

function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  return match !== null && isDay(Number(match[1]), Number(match[2]), Number(match[3]))
}

function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text)
  if (!match || !isDay(Number(match[1]), Number(match[2]), Number(match[3]))) return false
  return Number(match[4]) < 24 && Number(match[5]) < 60 && Number(match[6]) < 60
}

function isCidr(text: string): boolean {
  const slash = text.indexOf('/')
  if (slash < 0 || !/^\d{1,3}$/.test(text.slice(slash + 1))) return false
  const family = isIP(text.slice(0, slash))
  return family !== 0 && Number(text.slice(slash + 1)) <= (family === 4 ? 32 : 128)
}

function isUri(text: string): boolean {
  return /^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text) && URL.canParse(text)
}

/** The string formats the server enforces; any other name is a remark. */
const FORMATS: ReadonlyMap<string, FormatCheck> = new Map<string, FormatCheck>([
  ['date', isDate],
  ['date-time', isDateTime],
  ['datetime', isDateTime],
  ['duration', (text) => DURATION_TEXT.test(text) || DURATION_WORDS.test(text) || text === '0'],
  ['email', (text) => /^[^\s@]+@[^\s@]+$/.test(text)],
  ['hostname', (text) => text.length <= 255 && HOSTNAME.test(text)],
  ['ipv4', (text) => isIP(text) === 4],
  ['ipv6', (text) => isIP(text) === 6],
  ['cidr', isCidr],
  ['mac', (text) => /^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i.test(text)],
  ['uri', isUri],
  ['uuid', (text) => UUID.test(text)],
  ['byte', (text) => /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)],
])

/** The check for a string format, or undefined where the format is not enforced. */
export function formatCheck(format: string | undefined): FormatCheck | undefined {
  return format === undefined ? undefined : FORMATS.get(format)
}
