import { isRecord, type JsonRecord, jsonEqual, ownValue } from '../schema/json-value.js'
import { badPatch } from './bad-patch.js'

/** Merges a list of scalars as a set, in the order asked for or else in that of the patch. */
export function mergeScalarList(before: readonly unknown[], patch: readonly unknown[], order: unknown): unknown[] {
  const merged = [...before]
  for (const item of patch) if (!merged.some((each) => jsonEqual(each, item))) merged.push(item)
  return orderList(merged, before, order ?? patch, undefined)
}

export interface ObjectListRules {
  mergeKey: string
  /** Merges an item of the patch into the one that has its key. */
  merge(target: JsonRecord, item: JsonRecord): JsonRecord
}

/** Merges a list of objects by its merge key; items may carry `$patch: delete|replace|merge`. */
export function mergeObjectList(
  before: readonly unknown[],
  patch: readonly unknown[],
  { mergeKey, merge }: ObjectListRules,
  order: unknown,
): unknown[] {
  const items = patch.filter(isRecord)
  if (items.some((item) => item.$patch === 'replace')) {
    const isKept = (item: JsonRecord): boolean => item.$patch !== 'replace' && item.$patch !== 'delete'
    return items.filter(isKept).map((item) => merge({}, item))
  }
  let merged: unknown[] = [...before]
  for (const item of items) {
    const key = ownValue(item, mergeKey)
    if (key === undefined) {
      throw badPatch(`map: ${JSON.stringify(item)} does not contain declared merge key: ${mergeKey}`)
    }
    if (item.$patch === 'delete') {
      merged = merged.filter((each) => !hasKey(each, mergeKey, key))
      continue
    }
    const at = merged.findIndex((each) => hasKey(each, mergeKey, key))
    if (at < 0) merged.push(merge({}, item))
    // Found by a key it has, so it is an object.
    else merged[at] = merge(merged[at] as JsonRecord, item)
  }
  return orderList(merged, before, order ?? items, mergeKey)
}

function hasKey(item: unknown, mergeKey: string, key: unknown): boolean {
  return isRecord(item) && jsonEqual(ownValue(item, mergeKey), key)
}

/**
 * Puts a merged list into the order the client asked for. Items the client does not know keep their place relative to
 * the items that stood before the patch.
 */
export function orderList(
  merged: readonly unknown[],
  before: readonly unknown[],
  order: unknown,
  mergeKey: string | undefined,
): unknown[] {
  if (!Array.isArray(order)) throw badPatch('$setElementOrder is a list')
  const identity = (item: unknown): unknown => (mergeKey && isRecord(item) ? ownValue(item, mergeKey) : item)
  const indexIn = (list: readonly unknown[], item: unknown): number =>
    list.findIndex((each) => jsonEqual(identity(each), identity(item)))

  const wanted = merged.filter((item) => indexIn(order, item) >= 0)
  wanted.sort((a, b) => indexIn(order, a) - indexIn(order, b))
  const others = merged.filter((item) => indexIn(order, item) < 0)

  const result: unknown[] = []
  for (const item of wanted) {
    const place = indexIn(before, item)
    while (others.length > 0 && place >= 0 && indexIn(before, others[0]) < place) result.push(others.shift())
    result.push(item)
  }
  return [...result, ...others]
}
