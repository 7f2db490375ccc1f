import { isDeepStrictEqual } from 'node:util'

type Json = Record<string, unknown>

/**
 * The JSON merge patch that turns `before` into `after`, or undefined when they are equal. Arrays are replaced whole;
 * absent and undefined count the same.
 */
export function mergeDiff(before: object, after: object): Json | undefined {
  const from = before as Json
  const to = after as Json
  const patch: Json = {}
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const change = valueDiff(from[key], to[key])
    if (change !== undefined) patch[key] = change.value
  }
  return Object.keys(patch).length > 0 ? patch : undefined
}

function valueDiff(before: unknown, after: unknown): { value: unknown } | undefined {
  if (before === after) return undefined
  if (after === undefined || after === null) {
    return before === undefined || before === null ? undefined : { value: null }
  }
  if (isPlainObject(before) && isPlainObject(after)) {
    const nested = mergeDiff(before, after)
    return nested && { value: nested }
  }
  return isDeepStrictEqual(before, after) ? undefined : { value: after }
}

function isPlainObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
