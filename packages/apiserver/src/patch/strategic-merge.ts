import { isRecord, type JsonRecord, jsonEqual, ownValue, setKey } from '../schema/json-value.js'
import { badPatch } from './bad-patch.js'
import type { PatchField, PatchSchema } from './patch-schema.js'
import { mergeObjectList, mergeScalarList, orderList } from './strategic-list.js'

const DELETE_LIST = '$deleteFromPrimitiveList/'
const ORDER = '$setElementOrder/'
const RETAIN = '$retainKeys'
const PATCH = '$patch'

/**
 * Strategic merge by the rules of `schema`: lists merge by key, and the directives `$patch`, `$retainKeys`,
 * `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>` are obeyed. Arguments are not changed. A malformed
 * directive is a `BadRequest`.
 */
export function strategicMerge(target: unknown, patch: unknown, schema: PatchSchema | undefined): JsonRecord {
  if (!isRecord(patch)) throw badPatch('a strategic merge patch is an object')
  return mergeRecord(isRecord(target) ? target : {}, patch, schema)
}

function mergeRecord(target: JsonRecord, patch: JsonRecord, schema: PatchSchema | undefined): JsonRecord {
  const directive = ownValue(patch, PATCH)
  if (directive === 'replace') return withoutDirectives(patch, schema)
  if (directive === 'delete') return {}
  if (directive !== undefined && directive !== 'merge') {
    throw badPatch(`unknown patch type ${JSON.stringify(directive)} in map`)
  }
  const merged = retainKeys(target, patch)
  for (const key of Object.keys(patch)) {
    if (key === PATCH || key === RETAIN || key.startsWith(ORDER)) continue
    if (key.startsWith(DELETE_LIST)) {
      deleteScalars(merged, key.slice(DELETE_LIST.length), patch[key])
      continue
    }
    const value = patch[key]
    if (value === null || value === undefined) delete merged[key]
    else setKey(merged, key, mergeField(ownValue(merged, key), value, schema?.field(key), orderFor(patch, key)))
  }
  orderUntouched(merged, patch, schema)
  return merged
}

function retainKeys(target: JsonRecord, patch: JsonRecord): JsonRecord {
  const retained = ownValue(patch, RETAIN)
  const merged: JsonRecord = {}
  if (retained !== undefined && !Array.isArray(retained)) throw badPatch(`${RETAIN} is a list of keys`)
  for (const key of Object.keys(patch)) {
    if (retained && !key.startsWith('$') && patch[key] !== null && !retained.includes(key)) {
      throw badPatch(`${RETAIN} directive does not contain the patched key ${JSON.stringify(key)}`)
    }
  }
  for (const key of Object.keys(target)) {
    if (!retained || retained.includes(key)) setKey(merged, key, target[key])
  }
  return merged
}

function deleteScalars(merged: JsonRecord, field: string, values: unknown): void {
  if (!Array.isArray(values)) throw badPatch(`${DELETE_LIST}${field} is a list of values`)
  const before = ownValue(merged, field)
  if (!Array.isArray(before)) return
  setKey(
    merged,
    field,
    before.filter((item) => !values.some((value) => jsonEqual(value, item))),
  )
}

function mergeField(before: unknown, value: unknown, field: PatchField | undefined, order: unknown): unknown {
  if (isRecord(value)) {
    if (field?.strategies.includes('replace') || !isRecord(before)) return mergeRecord({}, value, field?.child)
    return mergeRecord(before, value, field?.child)
  }
  if (!Array.isArray(value)) return value
  if (!field?.strategies.includes('merge')) return value.map((item) => clean(item, field?.child))
  const existing = Array.isArray(before) ? before : []
  const { mergeKey, child } = field
  if (mergeKey === undefined || ![...value, ...existing].every(isRecord)) return mergeScalarList(existing, value, order)
  const merge = (target: JsonRecord, item: JsonRecord): JsonRecord => mergeRecord(target, item, child)
  return mergeObjectList(existing, value, { mergeKey, merge }, order)
}

/** `$setElementOrder` may stand alone: then it orders a list that the patch leaves as it is. */
function orderUntouched(merged: JsonRecord, patch: JsonRecord, schema: PatchSchema | undefined): void {
  for (const key of Object.keys(patch)) {
    if (!key.startsWith(ORDER)) continue
    const field = key.slice(ORDER.length)
    const list = ownValue(merged, field)
    if (Object.hasOwn(patch, field) || !Array.isArray(list)) continue
    setKey(merged, field, orderList(list, list, patch[key], schema?.field(field)?.mergeKey))
  }
}

function orderFor(patch: JsonRecord, key: string): unknown {
  return ownValue(patch, ORDER + key)
}

function clean(value: unknown, schema: PatchSchema | undefined): unknown {
  return isRecord(value) ? withoutDirectives(value, schema) : value
}

/** A patch as a value of its own: directives gone, nulls gone. */
function withoutDirectives(patch: JsonRecord, schema: PatchSchema | undefined): JsonRecord {
  const { [PATCH]: _directive, ...rest } = patch
  return mergeRecord({}, rest, schema)
}
