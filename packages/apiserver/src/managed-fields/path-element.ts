import { canonicalJson, isRecord, ownValue } from '../schema/json-value.js'
import type { ListType } from './type-schema.js'

/** The element of a record's field. */
export function fieldElement(name: string): string {
  return `f:${name}`
}

/** The element of a value in a set. */
export function valueElement(value: unknown): string {
  return `v:${canonicalJson(value)}`
}

/** The element of an item in a keyed list: its key fields, absent ones as the type's defaults. */
export function itemElement(item: unknown, type: ListType): string {
  const parts: string[] = []
  for (const key of type.keys) {
    const value = (isRecord(item) ? ownValue(item, key) : undefined) ?? type.keyDefaults[key]
    if (value !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(value)}`)
  }
  return `k:{${parts.join(',')}}`
}

/** The items of a list by their element; of items with the same element the last one counts. */
export function itemsByElement(list: readonly unknown[], type: ListType): Map<string, unknown> {
  return new Map(list.map((item) => [itemElement(item, type), item]))
}
