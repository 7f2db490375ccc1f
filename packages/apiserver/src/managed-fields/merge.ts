import { isRecord, type JsonRecord, jsonEqual, ownValue, setKey } from '../schema/json-value.js'
import { type FieldSet, isMember } from './field-set.js'
import { fieldElement, itemElement, itemsByElement, valueElement } from './path-element.js'
import { anyType, type ListType, type RecordType, type TypeSchema } from './type-schema.js'

/** Lays an applied configuration over a live value. Parts that stay the same are shared with the live value. */
export function mergeApplied(live: unknown, applied: unknown, type: TypeSchema): unknown {
  if (live === undefined) return applied
  if ((type.kind === 'record' || type.kind === 'any') && isRecord(live) && isRecord(applied)) {
    return mergeRecords(live, applied, type)
  }
  if (type.kind === 'list' && Array.isArray(live) && Array.isArray(applied)) return mergeLists(live, applied, type)
  if (type.kind === 'set' && Array.isArray(live) && Array.isArray(applied)) {
    return mergeOrder(live, applied, valueElement, (_old, item) => item)
  }
  return jsonEqual(live, applied) ? live : applied
}

function fieldTypeOf(type: TypeSchema, name: string): TypeSchema {
  return type.kind === 'record' ? type.field(name) : anyType
}

function mergeRecords(live: JsonRecord, applied: JsonRecord, type: TypeSchema): JsonRecord {
  let merged: JsonRecord | undefined
  for (const name of Object.keys(applied)) {
    const before = ownValue(live, name)
    const after = mergeApplied(before, applied[name], fieldTypeOf(type, name))
    if (after === before) continue
    if (!merged) {
      merged = {}
      for (const key of Object.keys(live)) setKey(merged, key, live[key])
    }
    setKey(merged, name, after)
  }
  return merged ?? live
}

function mergeLists(live: readonly unknown[], applied: readonly unknown[], type: ListType): readonly unknown[] {
  return mergeOrder(
    live,
    applied,
    (item) => itemElement(item, type),
    (old, item) => mergeApplied(old, item, type.item),
  )
}

/**
 * Applied items in the applied order; live items that are not applied stay behind the shared item they followed. A
 * shared live item that is not the next one due is passed over and taken where the applied list has it.
 */
function mergeOrder(
  live: readonly unknown[],
  applied: readonly unknown[],
  elementOf: (item: unknown) => string,
  merge: (old: unknown, item: unknown) => unknown,
): readonly unknown[] {
  const liveItems = new Map(live.map((item) => [elementOf(item), item]))
  const waiting = [...liveItems]
  const wanted = [...new Map(applied.map((item) => [elementOf(item), item]))]
  const isWanted = new Set(wanted.map(([element]) => element))
  const merged: unknown[] = []
  /** Takes live items up to the shared one that is due next. */
  const takeLive = (due: string | undefined): void => {
    for (let next = waiting[0]; next !== undefined && next[0] !== due; next = waiting[0]) {
      if (!isWanted.has(next[0])) merged.push(next[1])
      waiting.shift()
    }
  }
  for (const [i, [element, item]] of wanted.entries()) {
    takeLive(wanted.slice(i).find(([each]) => liveItems.has(each))?.[0])
    merged.push(merge(liveItems.get(element), item))
    if (waiting[0]?.[0] === element) waiting.shift()
  }
  takeLive(undefined)
  const isSame = merged.length === live.length && merged.every((item, i) => item === live[i])
  return isSame ? live : merged
}

/**
 * Removes the members of `gone` from a value, unless `owned` holds the place or something below it. A place that loses
 * its last child goes too when it has no owner.
 */
export function removeFields(value: unknown, gone: FieldSet, owned: FieldSet | undefined, type: TypeSchema): unknown {
  if ((type.kind === 'record' || type.kind === 'any') && isRecord(value))
    return removeFromRecord(value, gone, owned, type)
  if (type.kind === 'list' && Array.isArray(value)) return removeFromList(value, gone, owned, type)
  if (type.kind === 'set' && Array.isArray(value)) {
    const left = value.filter((item) => {
      const element = valueElement(item)
      return gone[element] === undefined || owned?.[element] !== undefined
    })
    return left.length === value.length ? value : left
  }
  return value
}

function removeFromRecord(
  value: JsonRecord,
  gone: FieldSet,
  owned: FieldSet | undefined,
  type: RecordType | TypeSchema,
): JsonRecord {
  let left: JsonRecord | undefined
  for (const name of Object.keys(value)) {
    const element = fieldElement(name)
    const leaving = gone[element]
    if (leaving === undefined) continue
    const after = removeChild(value[name], leaving, owned?.[element], fieldTypeOf(type, name))
    if (after === value[name]) continue
    if (!left) {
      left = {}
      for (const key of Object.keys(value)) setKey(left, key, value[key])
    }
    if (after === undefined) delete left[name]
    else setKey(left, name, after)
  }
  return left ?? value
}

function removeFromList(
  value: readonly unknown[],
  gone: FieldSet,
  owned: FieldSet | undefined,
  type: ListType,
): readonly unknown[] {
  let isChanged = false
  const left: unknown[] = []
  for (const [element, item] of itemsByElement(value, type)) {
    const leaving = gone[element]
    const after = leaving === undefined ? item : removeChild(item, leaving, owned?.[element], type.item)
    if (after !== item) isChanged = true
    if (after !== undefined) left.push(after)
  }
  return isChanged ? left : value
}

function removeChild(child: unknown, leaving: FieldSet, owned: FieldSet | undefined, type: TypeSchema): unknown {
  if (isMember(leaving) && owned === undefined) return undefined
  const after = removeFields(child, leaving, owned, type)
  if (after === child || owned !== undefined) return after
  return isEmpty(after) ? undefined : after
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0
}
