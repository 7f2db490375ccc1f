import { isRecord, type JsonRecord, ownValue, setKey } from '../schema/json-value.js'

/**
 * RFC 7386: `null` deletes, objects merge, everything else replaces. Neither argument is changed; parts of both may be
 * shared with the result.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const merged: JsonRecord = {}
  if (isRecord(target)) {
    for (const key of Object.keys(target)) if (!Object.hasOwn(patch, key)) setKey(merged, key, target[key])
  }
  for (const key of Object.keys(patch)) {
    const value = patch[key]
    if (value === null || value === undefined) continue
    const before = isRecord(target) ? ownValue(target, key) : undefined
    setKey(merged, key, mergePatch(before, value))
  }
  return merged
}
