type Json = Record<string, unknown>

/**
 * The JSON merge patch that turns `before` into `after`, or undefined when they are equal. Arrays are replaced whole;
 * absent and undefined count the same.
 */
export function mergeDiff(before: object, after: object): Json | undefined {
  const from = before as Json
  const to = after as Json
  const patch: Json = {}
  const compare = (key: string): void => {
    const change = valueDiff(from[key], to[key])
    if (change !== undefined) patch[key] = change.value
  }
  for (const key in from) compare(key)
  for (const key in to) if (!(key in from)) compare(key)
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
  return isSame(before, after) ? undefined : { value: after }
}

/** Deep equality of JSON, absent members equal to undefined ones. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, at) => isSame(item, b[at]))
  if (!isPlainObject(a) || !isPlainObject(b)) return false
  for (const key in a) if (!isSame(a[key], b[key])) return false
  for (const key in b) if (b[key] !== undefined && !(key in a)) return false
  return true
}

function isPlainObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
