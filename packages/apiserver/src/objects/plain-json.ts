/** A deep copy of plain JSON data. Keys with an undefined value are dropped, as serialising would drop them. */
export function copyJson<T>(value: T): T {
  return copy(value) as T
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copy)
  if (value instanceof Date) return value.toISOString()
  const result: Record<string, unknown> = {}
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key]
    if (item === undefined || key === '__proto__') continue
    result[key] = typeof item === 'object' && item !== null ? copy(item) : item
  }
  return result
}

/** Freezes plain JSON data through and through; parts that are frozen already are trusted to be so throughout. */
export function freezeJson<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item === 'object') freezeJson(item)
    } else {
      for (const key in value) {
        const item = value[key]
        if (typeof item === 'object') freezeJson(item)
      }
    }
    Object.freeze(value)
  }
  return value
}

/** Equality of plain JSON data; key order does not matter. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => equalJson(item, b[index]))
  }
  if (Array.isArray(b)) return false
  const left = a as Record<string, unknown>
  const right = b as Record<string, unknown>
  let count = 0
  for (const key in left) {
    if (left[key] === undefined) continue
    count++
    if (!(key in right) || !equalJson(left[key], right[key])) return false
  }
  let other = 0
  for (const key in right) if (right[key] !== undefined) other++
  return count === other
}

/** Equality of two objects apart from the ignored fields of each. */
export function equalFields(a: JsonObject, b: JsonObject, ignored: ReadonlySet<string>): boolean {
  if (a === b) return true
  for (const key in a) {
    if (a[key] === b[key] || ignored.has(key)) continue
    if (!equalJson(a[key], b[key])) return false
  }
  for (const key in b) if (!Object.hasOwn(a, key) && b[key] !== undefined && !ignored.has(key)) return false
  return true
}

export type JsonObject = Record<string, unknown>

/** Whether the value is a JSON object, not a list and not null. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
