import { isRecord, ownValue } from '../schema/json-value.js'

/** Every value a path leads to in an object; empty where it leads nowhere. */
export type JsonPath = (object: unknown) => unknown[]

type Step = (values: unknown[]) => unknown[]

/** A path that does not parse. */
export class JsonPathError extends Error {
  override readonly name: string = 'JsonPathError'
  readonly code: string = 'Invalid'
}

/**
 * Compiles the JSONPath that CRDs use for printer columns and scale: `.spec.replicas`, `['a.b']`, `[0]`, `[-1:]`, `[*]`,
 * `..name` and filters such as `[?(@.type=="Ready")]`. Throws `JsonPathError` for anything else.
 */
export function compileJsonPath(path: string): JsonPath {
  const steps: Step[] = []
  const text = path.startsWith('{') && path.endsWith('}') ? path.slice(1, -1) : path
  let rest = text.startsWith('$') ? text.slice(1) : text
  while (rest !== '') {
    const [step, length] = parseStep(rest, path)
    steps.push(step)
    rest = rest.slice(length)
  }
  return (object) => {
    let values = [object]
    for (const step of steps) values = step(values)
    return values
  }
}

function parseStep(rest: string, path: string): [Step, number] {
  const name = /^(\.\.|\.)?((?:[^.[\]\\\s]|\\.)+)/.exec(rest)
  if (name && name[2] !== undefined && (name[1] !== undefined || !rest.startsWith('['))) {
    const key = name[2].replaceAll(/\\(.)/g, '$1')
    const step = key === '*' ? allChildren : member(key)
    return [name[1] === '..' ? (values) => step(values.flatMap(descendants)) : step, name[0].length]
  }
  if (rest.startsWith('[') || rest.startsWith('.[')) {
    const start = rest.indexOf('[') + 1
    const end = bracketEnd(rest, start)
    if (end > 0) return [bracketStep(rest.slice(start, end).trim(), path), end + 1]
  }
  throw new JsonPathError(`invalid JSONPath ${JSON.stringify(path)}`)
}

/** Where the bracket opened before `start` closes, quotes and nested brackets skipped. */
function bracketEnd(text: string, start: number): number {
  let depth = 1
  let quote = ''
  for (let i = start; i < text.length; i++) {
    const char = text[i]!
    if (quote) {
      if (char === '\\') i++
      else if (char === quote) quote = ''
    } else if (char === '"' || char === "'") quote = char
    else if (char === '[') depth++
    else if (char === ']' && --depth === 0) return i
  }
  return -1
}

function bracketStep(inside: string, path: string): Step {
  if (inside === '*') return allChildren
  const quoted = /^(['"])(.*)\1$/.exec(inside)
  if (quoted) return member(quoted[2]!.replaceAll(/\\(.)/g, '$1'))
  if (/^-?\d+$/.test(inside)) return (values) => values.flatMap((value) => itemAt(value, Number(inside)))
  const slice = /^(-?\d*):(-?\d*)$/.exec(inside)
  if (slice) {
    const from = slice[1] ? Number(slice[1]) : 0
    const to = slice[2] ? Number(slice[2]) : undefined
    return (values) => values.flatMap((value) => (Array.isArray(value) ? value.slice(from, to) : []))
  }
  const filter = /^\?\s*\((.*)\)$/.exec(inside)
  if (filter) return filterStep(filter[1]!, path)
  throw new JsonPathError(`invalid JSONPath ${JSON.stringify(path)}`)
}

const allChildren: Step = (values) => values.flatMap(children)

function member(key: string): Step {
  return (values) =>
    values.flatMap((value) => {
      const child = isRecord(value) ? ownValue(value, key) : undefined
      return child === undefined ? [] : [child]
    })
}

function itemAt(value: unknown, index: number): unknown[] {
  if (!Array.isArray(value)) return []
  const at = index < 0 ? value.length + index : index
  return at >= 0 && at < value.length ? [value[at]] : []
}

function children(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  return isRecord(value) ? Object.values(value) : []
}

function descendants(value: unknown): unknown[] {
  return [value, ...children(value).flatMap(descendants)]
}

type Operand = (item: unknown) => unknown

const COMPARE: Readonly<Record<string, (a: unknown, b: unknown) => boolean>> = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '<=': (a, b) => order(a, b) <= 0,
  '>=': (a, b) => order(a, b) >= 0,
  '<': (a, b) => order(a, b) < 0,
  '>': (a, b) => order(a, b) > 0,
}

/** Negative, zero or positive; NaN, which no comparison accepts, for values without an order. */
function order(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0
  return Number.NaN
}

function filterStep(condition: string, path: string): Step {
  const parts = /^\s*(@[^=!<>]*|'[^']*'|"[^"]*"|[^=!<>@]+?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?)\s*)?$/.exec(condition)
  if (!parts) throw new JsonPathError(`invalid filter in JSONPath ${JSON.stringify(path)}`)
  const left = operand(parts[1]!.trim(), path)
  const [, , operator, rightText] = parts
  if (operator === undefined || rightText === undefined) {
    return (values) => values.flatMap(children).filter((item) => left(item) !== undefined)
  }
  const right = operand(rightText, path)
  const compare = COMPARE[operator]!
  return (values) => values.flatMap(children).filter((item) => compare(left(item), right(item)))
}

function operand(text: string, path: string): Operand {
  if (text.startsWith('@')) {
    const read = compileJsonPath(text.slice(1))
    return (item) => read(item)[0]
  }
  const quoted = /^(['"])(.*)\1$/.exec(text)
  if (quoted) return () => quoted[2]
  if (text === 'true' || text === 'false') return () => text === 'true'
  if (text === 'null') return () => null
  if (text !== '' && !Number.isNaN(Number(text))) return () => Number(text)
  throw new JsonPathError(`invalid filter in JSONPath ${JSON.stringify(path)}`)
}
