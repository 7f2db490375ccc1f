import type { KubeObject, ManagedFieldsEntry } from '@corral/resources'
import { timestamp } from '../objects/timestamps.js'
import { compareObjects } from './compare.js'
import { type FieldSet, unmanagedFields, withoutFields } from './field-set.js'
import { internSet, subtractInterned, unionInterned } from './interned-sets.js'
import { decodeManagers, encodeManagers, isSameManager, type Manager, withFields } from './manager-entry.js'
import type { TypeSchema } from './type-schema.js'

export interface TrackUpdateInput {
  /** Undefined for a create. */
  readonly before: KubeObject | undefined
  readonly after: KubeObject
  readonly manager: string
  readonly type: TypeSchema
  readonly now: Date
  readonly subresource?: string
  /** Top-level fields this endpoint does not write (`status` on the main resource), whose ownership stays. */
  readonly ignores?: (field: string) => boolean
}

/**
 * `metadata.managedFields` after an ordinary write: the writer owns what it changed, others lose it. Undefined means
 * that the object has none. When ownership does not change, the entries of `before` come back as they are. An update
 * that sends its own entries sets them; `[]` and `[{}]` clear them.
 */
export function trackUpdate(input: TrackUpdateInput): ManagedFieldsEntry[] | undefined {
  const { before, after, type, now, subresource = '' } = input
  const live = before?.metadata?.managedFields
  const sent = subresource ? undefined : after.metadata?.managedFields
  if (sent && sent !== live && isReset(sent)) return undefined

  const base = baseManagers(sent, live)
  // An object without entries gets none until the first apply; a new object starts with its creator.
  if (before && base.managers.length === 0) return undefined

  // Entries that are the same array are passed over by the comparison anyway.
  const isSameEntries = live === after.metadata?.managedFields
  const old = before && !isSameEntries ? content(before) : (before ?? {})
  const difference = compareObjects(old, isSameEntries ? after : content(after), type)
  if (!difference.changed && !difference.removed) return base.entries
  const removed = difference.removed && internSet(difference.removed)
  const self = { manager: input.manager, operation: 'Update' as const, apiVersion: after.apiVersion ?? '', subresource }
  const others = withoutFields(difference.changed, input.ignores)
  const written = others && internSet(others)
  const taken = subtractInterned(written, unmanaged)
  const lost = base.managers.length > 0 ? unionInterned(written, removed) : undefined

  const managers: Manager[] = []
  let own: Manager | undefined
  for (const each of base.managers) {
    if (isSameManager(each, self)) own = each
    else pushIf(managers, withFields(each, subtractInterned(each.fields, lost)))
  }
  const fields = unionInterned(subtractInterned(own?.fields, removed), taken)
  if (fields) {
    const isKept = own && withFields(own, fields) === own
    managers.push(isKept && own ? own : newManager(self, timestamp(now), fields))
  }
  if (managers.length === base.managers.length && managers.every((each) => base.managers.includes(each))) {
    return base.entries
  }
  return managers.length > 0 ? encodeManagers(managers) : undefined
}

const unmanaged = internSet(unmanagedFields)

function newManager(self: Omit<Manager, 'fields' | 'time'>, time: string, fields: FieldSet): Manager {
  const { manager, operation, apiVersion, subresource } = self
  return { manager, operation, apiVersion, subresource, time, fields }
}

function pushIf(managers: Manager[], manager: Manager | undefined): void {
  if (manager) managers.push(manager)
}

/** Metadata's own book-keeping is not part of what is compared. */
export function content(object: KubeObject): KubeObject {
  if (object.metadata?.managedFields === undefined) return object
  const { managedFields: _dropped, ...metadata } = object.metadata
  return { ...object, metadata }
}

interface Base {
  readonly managers: readonly Manager[]
  readonly entries: ManagedFieldsEntry[] | undefined
}

/** Entries the client sent when they make sense, else those of the live object. */
function baseManagers(sent: ManagedFieldsEntry[] | undefined, live: ManagedFieldsEntry[] | undefined): Base {
  for (const entries of [sent, live]) {
    if (!entries || entries.length === 0) continue
    const managers = decodeManagers(entries)
    if (managers) return { managers, entries }
  }
  return { managers: [], entries: undefined }
}

function isReset(entries: readonly ManagedFieldsEntry[]): boolean {
  return entries.length === 0 || (entries.length === 1 && Object.keys(entries[0]!).length === 0)
}
