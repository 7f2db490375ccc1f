/** A JSON object. */
export type JsonRecord = Record<string, unknown>

/** True for JSON objects: not null, not an array. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether two JSON values are the same, whatever the order of their keys. A key holding `undefined` counts as absent. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    for (let i = 0; i < a.length; i++) if (!jsonEqual(a[i], b[i])) return false
    return true
  }
  if (Array.isArray(b)) return false
  const left = a as JsonRecord
  const right = b as JsonRecord
  let count = 0
  for (const key in left) {
    if (left[key] === undefined) continue
    count++
    if (!jsonEqual(left[key], right[key])) return false
  }
  for (const key in right) if (right[key] !== undefined) count--
  return count === 0
}

/** A deep copy of a JSON value that shares nothing with it. */
export function jsonCopy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  // The copy has the shape of its source, which the type checker cannot follow through the recursion.
  if (Array.isArray(value)) return value.map(jsonCopy) as T
  const copy: JsonRecord = {}
  for (const key of Object.keys(value)) setKey(copy, key, jsonCopy((value as JsonRecord)[key]))
  return copy as T
}

/** Sets an own key even when it is called `__proto__`, which a plain assignment would send to the prototype. */
export function setKey(target: JsonRecord, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value
  else Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}

/** JSON with sorted keys: equal values give equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isRecord(value)) return JSON.stringify(value) ?? 'null'
  const parts: string[] = []
  for (const key of Object.keys(value).sort()) {
    if (value[key] !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(value[key])}`)
  }
  return `{${parts.join(',')}}`
}

/** Own property of a record, never one of `Object.prototype`. */
export function ownValue(record: JsonRecord, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
