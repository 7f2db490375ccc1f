import { isRecord, type JsonRecord, jsonEqual, ownValue } from '../schema/json-value.js'
import { type FieldSet, fieldNode, memberSet, unionSets } from './field-set.js'
import { fieldElement, itemElement, itemsByElement, valueElement } from './path-element.js'
import { type AnyType, anyType, leafType, type RecordType, type TypeSchema } from './type-schema.js'

/** How two states of an object differ, as sets of paths. */
export interface Comparison {
  /** Added or modified. */
  readonly changed: FieldSet | undefined
  readonly removed: FieldSet | undefined
}

const same: Comparison = { changed: undefined, removed: undefined }

/**
 * Compares two states. Parts they share are skipped without being looked at, so an update that keeps most of an object
 * costs little more than what it changes.
 */
export function compareObjects(before: unknown, after: unknown, type: TypeSchema): Comparison {
  if (before === after) return same
  if (before === undefined) return { changed: addedSet(after, type), removed: undefined }
  if (after === undefined) return { changed: undefined, removed: addedSet(before, type) }

  if ((type.kind === 'record' || type.kind === 'any') && isRecord(before) && isRecord(after)) {
    return compareRecords(before, after, type)
  }
  if (type.kind === 'list' && Array.isArray(before) && Array.isArray(after)) {
    const old = itemsByElement(before, type)
    const next = itemsByElement(after, type)
    return compareChildren(old, next, () => type.item)
  }
  if (type.kind === 'set' && Array.isArray(before) && Array.isArray(after)) {
    return compareChildren(valuesByElement(before), valuesByElement(after), () => leafType)
  }
  return jsonEqual(before, after) ? same : { changed: memberSet, removed: undefined }
}

function compareRecords(before: JsonRecord, after: JsonRecord, type: RecordType | AnyType): Comparison {
  let changed: Record<string, FieldSet> | undefined
  let removed: Record<string, FieldSet> | undefined
  for (const name in after) {
    const next = after[name]
    const old = ownValue(before, name)
    if (old === next) continue
    const difference = compareField(old, next, type, name)
    if (difference.changed) changed = withChild(changed, fieldElement(name), difference.changed)
    if (difference.removed) removed = withChild(removed, fieldElement(name), difference.removed)
  }
  for (const name in before) {
    if (before[name] === undefined || ownValue(after, name) !== undefined) continue
    const difference = compareField(before[name], undefined, type, name)
    if (difference.changed) changed = withChild(changed, fieldElement(name), difference.changed)
    if (difference.removed) removed = withChild(removed, fieldElement(name), difference.removed)
  }
  return changed || removed ? { changed, removed } : same
}

function compareField(old: unknown, next: unknown, parent: RecordType | AnyType, name: string): Comparison {
  const type = parent.kind === 'any' ? anyType : parent.field(name)
  return compareObjects(orImplicit(old, type), orImplicit(next, type), type)
}

/** What stands at a place: an implicit one that was never set is empty rather than absent. */
function orImplicit(value: unknown, type: TypeSchema): unknown {
  if (value !== undefined || !('implicit' in type) || !type.implicit) return value
  return type.kind === 'record' || type.kind === 'leaf' ? {} : []
}

function compareChildren(
  before: ReadonlyMap<string, unknown>,
  after: ReadonlyMap<string, unknown>,
  typeOf: () => TypeSchema,
): Comparison {
  let changed: Record<string, FieldSet> | undefined
  let removed: Record<string, FieldSet> | undefined
  for (const [element, item] of after) {
    const difference = compareObjects(before.get(element), item, typeOf())
    if (difference.changed) changed = withChild(changed, element, difference.changed)
    if (difference.removed) removed = withChild(removed, element, difference.removed)
  }
  for (const [element, item] of before) {
    if (!after.has(element)) removed = withChild(removed, element, addedSet(item, typeOf()) ?? memberSet)
  }
  return { changed, removed }
}

function withChild(
  children: Record<string, FieldSet> | undefined,
  element: string,
  child: FieldSet,
): Record<string, FieldSet> {
  const all = children ?? {}
  all[element] = child
  return all
}

function valuesByElement(list: readonly unknown[]): Map<string, unknown> {
  return new Map(list.map((value) => [valueElement(value), value]))
}

/** Every path that comes into being with a value, the places on the way included. */
function addedSet(value: unknown, type: TypeSchema): FieldSet | undefined {
  if (value === undefined) return undefined
  const children: Record<string, FieldSet> = {}
  if ((type.kind === 'record' || type.kind === 'any') && isRecord(value)) {
    for (const name of Object.keys(value)) {
      const set = addedSet(value[name], type.kind === 'any' ? anyType : type.field(name))
      if (set) children[fieldElement(name)] = set
    }
  } else if (type.kind === 'list' && Array.isArray(value)) {
    for (const item of value) {
      const element = itemElement(item, type)
      // Of items with equal keys only the position can be owned.
      children[element] = element in children ? memberSet : (addedSet(item, type.item) ?? memberSet)
    }
  } else if (type.kind === 'set' && Array.isArray(value)) {
    for (const item of value) children[valueElement(item)] = memberSet
  }
  return fieldNode(true, children)
}

/**
 * What an applied configuration lays claim to: leaves, list items and empty places, not the structs on the way. Items
 * that stand twice in their list are added to `duplicates`.
 */
export function appliedSet(value: unknown, type: TypeSchema, duplicates?: string[]): FieldSet | undefined {
  const children: Record<string, FieldSet> = {}
  if ((type.kind === 'record' || type.kind === 'any') && isRecord(value)) {
    for (const name of Object.keys(value)) {
      const set = appliedSet(value[name], type.kind === 'any' ? anyType : type.field(name), duplicates)
      if (!set) continue
      const isEntry = type.kind === 'any' || type.isEntry(name)
      children[fieldElement(name)] = isEntry ? asMember(set) : set
    }
    return fieldNode(Object.keys(value).length === 0, children)
  }
  if (type.kind === 'list' && Array.isArray(value)) {
    for (const item of value) {
      const element = itemElement(item, type)
      if (duplicates && Object.hasOwn(children, element)) duplicates.push(element)
      children[element] = asMember(appliedSet(item, type.item, duplicates))
    }
    return fieldNode(value.length === 0, children)
  }
  if (type.kind === 'set' && Array.isArray(value)) {
    for (const item of value) {
      const element = valueElement(item)
      if (duplicates && Object.hasOwn(children, element)) duplicates.push(element)
      children[element] = memberSet
    }
    return fieldNode(value.length === 0, children)
  }
  return memberSet
}

/** A set that holds the place itself too. */
function asMember(set: FieldSet | undefined): FieldSet {
  return unionSets(set, memberSet) ?? memberSet
}
