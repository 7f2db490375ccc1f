import { duplicateValue, invalidValue } from './field-error.js'
import type { JsonSchema } from './json-schema.js'
import { canonicalJson, isRecord, type JsonRecord, ownValue } from './json-value.js'
import type { ValidationContext } from './validate-context.js'

type ListCheck = (list: readonly unknown[], context: ValidationContext) => void

/** The uniqueness check of `x-kubernetes-list-type: set` and `map`. */
export function compileListType(schema: JsonSchema): ListCheck | undefined {
  const type = schema['x-kubernetes-list-type']
  if (type === 'set') return (list, context) => reportDuplicates(list, (item) => canonicalJson(item), context, same)
  if (type !== 'map') return undefined
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  return (list, context) => {
    const wrong = list.findIndex((item) => item !== null && !isRecord(item))
    if (wrong >= 0) {
      const field = `${context.field()}[${wrong}]`
      context.add(invalidValue(field, list[wrong], 'must be an object for an array of list-type map'))
      return
    }
    reportDuplicates(
      list,
      (item) => itemKey(schema, item),
      context,
      (item) => keyFields(keys, item),
    )
  }
}

function reportDuplicates(
  list: readonly unknown[],
  keyOf: (item: unknown) => string,
  context: ValidationContext,
  shown: (item: unknown) => unknown,
): void {
  if (list.length < 2) return
  const seen = new Map<string, number>()
  for (let i = 0; i < list.length; i++) {
    const key = keyOf(list[i])
    const times = (seen.get(key) ?? 0) + 1
    seen.set(key, times)
    // A value that appears three times is reported once.
    if (times === 2) context.add(duplicateValue(`${context.field()}[${i}]`, shown(list[i])))
  }
}

const same = (item: unknown): unknown => item

function keyFields(keys: readonly string[], item: unknown): JsonRecord {
  const fields: JsonRecord = {}
  if (!isRecord(item)) return fields
  for (const key of keys) {
    const value = ownValue(item, key)
    if (value !== undefined) fields[key] = value
  }
  return fields
}

/** Text that identifies an item of a list-type map among its siblings. */
export function itemKey(schema: JsonSchema, item: unknown): string {
  return canonicalJson(keyFields(schema['x-kubernetes-list-map-keys'] ?? [], item))
}

/** Finds an item's counterpart in an older list. Only list-type map items can be told apart; others have none. */
export function correlateItems(schema: JsonSchema, old: readonly unknown[]): ((item: unknown) => unknown) | undefined {
  if (schema['x-kubernetes-list-type'] !== 'map') return undefined
  const byKey = new Map(old.map((item) => [itemKey(schema, item), item]))
  return (item) => byKey.get(itemKey(schema, item))
}
