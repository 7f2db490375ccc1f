import { InvalidArgumentError } from 'commander'

const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3600 }

/** `90`, `90s`, `30m`, `1h30m` as whole seconds. */
export function parseDurationSeconds(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  const parts = [...text.matchAll(/(\d+)([smh])/g)]
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== text)
    throw new InvalidArgumentError('Give a duration such as 90s, 30m or 1h30m.')
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (unitSeconds[unit ?? 's'] ?? 1), 0)
}

export function parsePort(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new InvalidArgumentError('Give a port from 0 to 65535; 0 takes any free one.')
  return port
}

export function parseCount(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Give a whole number.')
  return Number(text)
}
