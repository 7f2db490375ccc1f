import type { ManagedFieldsEntry } from '@corral/resources'
import { freezeJson } from '../objects/plain-json.js'
import { Stamp } from '../store/stamp.js'
import { type FieldSet, parseFieldSet, sameSets, unionSets } from './field-set.js'
import { internSet, isInterned, isOrderedSet, orderedSet } from './interned-sets.js'

/** One manager's share of an object. */
export interface Manager {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string | undefined
  readonly fields: FieldSet
  /** How it is written, once it has been. */
  entry?: ManagedFieldsEntry
}

const MAX_UPDATE_MANAGERS = 10
const ANCIENT = 'ancient-changes'

/** The managers of an object; undefined when an entry has not the right shape. */
export function decodeManagers(entries: readonly ManagedFieldsEntry[] | undefined): Manager[] | undefined {
  const managers: Manager[] = []
  for (const entry of entries ?? []) {
    const manager = writtenFor.get(entry) ?? decoded.get(entry) ?? decodeManager(entry)
    if (!manager) return undefined
    managers.push(manager)
  }
  return managers
}

/** The manager an entry was made for. */
const writtenFor = new Stamp<Manager>()

/** What entries that came with objects, and are frozen by now, decode to. */
const decoded = new WeakMap<ManagedFieldsEntry, Manager>()

function decodeManager(entry: ManagedFieldsEntry): Manager | undefined {
  const given = (entry.fieldsV1 ?? {}) as FieldSet // checked, unless it is a set we made
  const fields = isInterned(given) ? given : parseFieldSet(given)
  const { operation, manager = '', apiVersion = '', subresource = '', time } = entry
  if (!fields || (operation !== 'Apply' && operation !== 'Update')) return undefined
  if (entry.fieldsType !== undefined && entry.fieldsType !== 'FieldsV1') return undefined
  if (!Object.isFrozen(entry)) return { manager, operation, apiVersion, subresource, time, fields }
  const result: Manager = { manager, operation, apiVersion, subresource, time, fields: internSet(fields) }
  decoded.set(entry, result)
  // An entry as it would be written again stays itself, and so do all its parts.
  const isWhole = entry.fieldsV1 !== undefined && entry.fieldsType !== undefined && entry.subresource !== ''
  if (isWhole && entry.manager !== undefined && entry.apiVersion !== undefined && isOrderedSet(fields)) {
    result.entry = entry
  }
  return result
}

/** Managers as entries, in Kubernetes' order: appliers first, then by time and name. */
export function encodeManagers(managers: readonly Manager[]): ManagedFieldsEntry[] {
  return capUpdaters(managers)
    .map(encodeManager)
    .sort(
      (a, b) =>
        compareText(a.operation, b.operation) ||
        compareText(a.time, b.time) ||
        compareText(a.manager, b.manager) ||
        compareText(a.apiVersion, b.apiVersion) ||
        compareText(a.subresource, b.subresource),
    )
}

function compareText(a = '', b = ''): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function encodeManager(manager: Manager): ManagedFieldsEntry {
  if (manager.entry) return manager.entry
  const entry: ManagedFieldsEntry = {
    manager: manager.manager,
    operation: manager.operation,
    apiVersion: manager.apiVersion,
    ...(manager.time !== undefined && { time: manager.time }),
    fieldsType: 'FieldsV1',
    fieldsV1: orderedSet(manager.fields),
    ...(manager.subresource !== '' && { subresource: manager.subresource }),
  }
  writtenFor.set(entry, manager)
  manager.entry = freezeJson(entry)
  return entry
}

/** Past ten updaters of a version the oldest are counted together. */
function capUpdaters(managers: readonly Manager[]): readonly Manager[] {
  const updaters = managers.filter((each) => each.operation === 'Update')
  if (updaters.length <= MAX_UPDATE_MANAGERS) return managers
  const byAge = [...updaters].sort((a, b) => compareText(a.time, b.time))
  const old = byAge.slice(0, updaters.length - MAX_UPDATE_MANAGERS + 1)
  const buckets = new Map<string, Manager>()
  for (const each of old) {
    const bucket = buckets.get(each.apiVersion)
    const fields = unionSets(bucket?.fields, each.fields) ?? each.fields
    buckets.set(each.apiVersion, changed(each, { manager: ANCIENT, subresource: '', fields }))
  }
  return [...managers.filter((each) => !old.includes(each)), ...buckets.values()]
}

/** Whether an entry belongs to this writer. Appliers are one whatever version they use. */
export function isSameManager(a: Manager, b: Omit<Manager, 'fields' | 'time'>): boolean {
  return (
    a.manager === b.manager &&
    a.operation === b.operation &&
    a.subresource === b.subresource &&
    (a.operation === 'Apply' || a.apiVersion === b.apiVersion)
  )
}

/** The manager with another set; the same one when nothing changes, undefined when nothing is left. */
export function withFields(manager: Manager, fields: FieldSet | undefined): Manager | undefined {
  if (fields === undefined) return undefined
  return fields === manager.fields || sameSets(fields, manager.fields) ? manager : changed(manager, { fields })
}

function changed(manager: Manager, change: Partial<Manager>): Manager {
  const { entry: _written, ...rest } = manager
  return { ...rest, ...change }
}
