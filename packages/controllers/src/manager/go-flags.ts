import { parseGoDuration } from '@corral/resources'

export type FlagValue = string | number | boolean

/** One flag of a program. Durations are kept in milliseconds. */
export interface Flag {
  name: string
  kind: 'bool' | 'string' | 'int' | 'float' | 'duration'
  default: FlagValue
  help: string
}

/** `--name=value`, `--name value`, `-name`; a switch stands for true. As Go's flag package reads them. */
export function readFlags(
  flags: readonly Flag[],
  argv: readonly string[],
): { values: Map<string, FlagValue> } | { error: string } {
  const known = new Map(flags.map((entry) => [entry.name, entry]))
  const values = new Map<string, FlagValue>(flags.map((entry) => [entry.name, entry.default]))
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? ''
    const match = /^--?([^=-][^=]*)(?:=(.*))?$/s.exec(word)
    if (word === '--' || !match) break // the rest are arguments, which are ignored
    const name = match[1] ?? ''
    const entry = known.get(name)
    if (!entry) return { error: `flag provided but not defined: -${name}` }
    let given = match[2]
    if (given === undefined && entry.kind === 'bool') given = 'true'
    if (given === undefined) {
      at += 1
      given = argv[at]
    }
    if (given === undefined) return { error: `flag needs an argument: -${name}` }
    const value = readValue(entry.kind, given)
    if (value === undefined) return { error: `invalid value ${JSON.stringify(given)} for flag -${name}: parse error` }
    values.set(name, value)
  }
  return { values }
}

function readValue(kind: Flag['kind'], given: string): FlagValue | undefined {
  switch (kind) {
    case 'string':
      return given
    case 'bool':
      if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(given)) return true
      return ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(given) ? false : undefined
    case 'int':
      return /^[+-]?\d+$/.test(given) ? Number(given) : undefined
    case 'float': {
      if (/^[+-]?(inf|infinity)$/i.test(given)) return given.startsWith('-') ? -Infinity : Infinity
      if (/^nan$/i.test(given)) return Number.NaN
      return given.trim() !== '' && Number.isFinite(Number(given)) ? Number(given) : undefined
    }
    case 'duration': {
      const nanoseconds = parseGoDuration(given)
      return nanoseconds === undefined ? undefined : Number(nanoseconds) / 1e6
    }
  }
}
