import { highestPriority, lowestPriority } from '@corral/resources/task-words'
import { InvalidArgumentError } from 'commander'

const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** A year. Far beyond it, timers and dates overflow. */
const longestDays = 366

/** `90`, `90s`, `30m`, `1h30m`, `7d` as whole seconds. */
export function parseDurationSeconds(text: string): number {
  const words = /^\d+$/.test(text) ? `${text}s` : text
  const parts = [...words.matchAll(/(\d+)([smhd])/g)]
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== words)
    throw new InvalidArgumentError('Give a duration such as 90s, 30m, 1h30m or 7d.')
  const seconds = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (unitSeconds[unit ?? 's'] ?? 1), 0)
  if (seconds > longestDays * 86_400) throw new InvalidArgumentError(`Give a duration of at most ${longestDays}d.`)
  return seconds
}

/** A duration of at least a second: nothing would be done in less. */
export function parseTimeSeconds(text: string): number {
  const seconds = parseDurationSeconds(text)
  if (seconds === 0) throw new InvalidArgumentError('Give a duration above zero, such as 90s, 30m or 1h30m.')
  return seconds
}

/** One that the task API takes: told in the words of the command line, not as a number of seconds. */
export function parseUpTo(mostSeconds: number, parse: (text: string) => number): (text: string) => number {
  return (text) => {
    const seconds = parse(text)
    if (seconds > mostSeconds) throw new InvalidArgumentError(`Give a duration of at most ${mostSeconds / 3600}h.`)
    return seconds
  }
}

export function parsePort(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('Give a port from 0 to 65535; 0 takes any free one.')
  return port
}

export function parseCount(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Give a whole number.')
  const count = Number(text)
  if (!Number.isSafeInteger(count)) throw new InvalidArgumentError('Give a smaller number.')
  return count
}

/** How many sandboxes or tasks there may be at once: beyond this a machine only breaks. */
const mostAtOnce = 99_999

export function parseAtOnce(text: string): number {
  const count = parseCount(text)
  if (count > mostAtOnce) throw new InvalidArgumentError(`Give a whole number from 0 to ${mostAtOnce}.`)
  return count
}

/** A number of things of which there is at least one. */
export function parseNumber(text: string): number {
  const count = parseCount(text)
  if (count === 0) throw new InvalidArgumentError('Give a whole number above zero.')
  return count
}

/** Commander takes a word after an option that needs one as its value, also `-5`. */
export function parsePriority(text: string): number {
  const priority = Number(text)
  if (!/^[+-]?\d+$/.test(text) || priority < lowestPriority || priority > highestPriority)
    throw new InvalidArgumentError(`Give a whole number from ${lowestPriority} to ${highestPriority}.`)
  return priority
}

/** Fewer than this leave no room for a daemon, a shell and an agent: nothing would start. */
const leastPids = 64

export function parsePids(text: string): number {
  const pids = parseCount(text)
  if (pids < leastPids) throw new InvalidArgumentError(`Give ${leastPids} or more.`)
  return pids
}

/** An amount of money above zero, such as `0.5`. */
export function parseAmount(text: string): number {
  const amount = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || amount <= 0) throw new InvalidArgumentError('Give an amount such as 2 or 0.50.')
  return amount
}

const unitBytes: Record<string, number> = { '': 1, K: 1e3, M: 1e6, G: 1e9, T: 1e12 }

/** `500M`, `20G`, `20GB` or a number of bytes; above zero. */
export function parseBytes(text: string): number {
  const [, count = '', unit = ''] = /^(\d+)([KMGT]?)B?$/i.exec(text) ?? []
  const bytes = Number(count) * (unitBytes[unit.toUpperCase()] ?? 1)
  if (count === '' || bytes < 1) throw new InvalidArgumentError('Give a size such as 500M or 20G.')
  return bytes
}

/** For an option that takes names with commas between them and may be given more than once. */
export function collected(text: string, before: readonly string[]): readonly string[] {
  return [...before, ...text.split(',').map((name) => name.trim())].filter((name) => name !== '')
}
