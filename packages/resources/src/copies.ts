/** A deep copy of JSON-like data: faster than `structuredClone`, and members set to undefined are left out. */
export function structuredCopy<T>(value: T): T {
  // The copy has the shape of its source, which the type checker cannot follow through the recursion.
  return copy(value) as T
}

/** Freezes the value and everything in it, in place. A frozen part is taken to be frozen all the way down. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const member of Object.values(value)) deepFreeze(member)
  return value
}

function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy)
  if (typeof value !== 'object' || value === null) return value
  const result: Record<string, unknown> = {}
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue
    // A plain assignment to this name would set the prototype.
    if (key === '__proto__') Object.defineProperty(result, key, { value: copy(member), enumerable: true })
    else result[key] = copy(member)
  }
  return result
}
