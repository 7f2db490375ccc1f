/** Typed reads from untrusted JSON: the wrong type reads as absent. */

export type JsonObject = Readonly<Record<string, unknown>>

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** A token count: a non-negative integer, anything else is 0. */
export function asCount(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0
}

/** The object a line of JSON holds, or undefined for anything else. */
export function parseJsonObject(line: string): JsonObject | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return asObject(JSON.parse(line))
  } catch {
    // Not JSON: the caller shows the line as it is.
    return undefined
  }
}
