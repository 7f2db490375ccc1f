import { KubeError, type KubeObject, type ManagedFieldsEntry, type StatusCause } from '@corral/resources'
import { timestamp } from '../objects/timestamps.js'
import { canonicalJson, isRecord, jsonEqual } from '../schema/json-value.js'
import { appliedSet, compareObjects } from './compare.js'
import { type Conflict, conflictCauses, conflictMessage, findConflicts } from './conflict.js'
import { type FieldSet, stripUnmanaged, subtractSets, unionSets, withoutFields } from './field-set.js'
import { decodeManagers, encodeManagers, isSameManager, type Manager, withFields } from './manager-entry.js'
import { mergeApplied, removeFields } from './merge.js'
import { content } from './track-update.js'
import type { TypeSchema } from './type-schema.js'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const BEFORE_FIRST_APPLY = 'before-first-apply'

export interface ApplyInput {
  /** Undefined when the apply creates the object. */
  readonly live: KubeObject | undefined
  readonly applied: KubeObject
  readonly manager: string
  readonly force: boolean
  readonly type: TypeSchema
  readonly now: Date
  readonly subresource?: string
  /** Top-level fields this endpoint does not write, whose ownership is not taken. */
  readonly ignores?: (field: string) => boolean
}

export type ApplyResult =
  /** `object` is `live` itself when nothing changes, ownership included. */
  { readonly object: KubeObject } | { readonly conflicts: { readonly message: string; readonly causes: StatusCause[] } }

/**
 * Server-side apply: merges by the type's list and map rules, removes what this manager applied before and no longer
 * does unless another manager owns it, and records ownership. A value that another manager owns and that would change is a
 * conflict unless `force`.
 */
export function applyPatch(input: ApplyInput): ApplyResult {
  const { live, type, subresource = '' } = input
  const applied = content(input.applied)
  const bare = live && content(live)
  const self = {
    manager: input.manager,
    operation: 'Apply' as const,
    apiVersion: applied.apiVersion ?? '',
    subresource,
  }
  const managers = managersOf(live, type)
  const last = managers.find((each) => isSameManager(each, self))
  const others = managers.filter((each) => each !== last)
  const claimed = stripUnmanaged(withoutFields(setOfApplied(applied, type), input.ignores))

  let merged = mergeApplied(bare ?? {}, applied, type) as KubeObject
  const gone = subtractSets(last?.fields, claimed)
  if (gone) merged = removeFields(merged, gone, unionSets(claimed, ownedBy(others)), type) as KubeObject

  const { changed, removed } = compareObjects(bare ?? {}, merged, type)
  const conflicts = bare ? findConflicts(others, withoutFields(changed, input.ignores)) : []
  if (conflicts.length > 0 && !input.force && !isCoveredByLastApplied(conflicts, input, type)) {
    return { conflicts: { message: conflictMessage(conflicts), causes: conflictCauses(conflicts) } }
  }

  const kept = loseFields(others, conflicts, removed)
  const own = ownEntry(last, self, claimed, input.now, live !== undefined && jsonEqual(bare, merged))
  const next = own ? [...kept, own] : kept
  return { object: withManagers(live, withLastApplied(merged, input), managers, next) }
}

/** What is applied; `BadRequest` when a list of it has two items of which only one can be meant. */
function setOfApplied(applied: KubeObject, type: TypeSchema): FieldSet | undefined {
  const duplicates: string[] = []
  const set = appliedSet(applied, type, duplicates)
  if (duplicates.length === 0) return set
  const which = duplicates.map((element) => element.slice(2)).join(', ')
  throw new KubeError('BadRequest', `failed to create typed patch object: duplicate entries for key ${which}`, {
    status: 400,
  })
}

/** Entries of the live object. Fields without an owner belong to the manager `before-first-apply`. */
function managersOf(live: KubeObject | undefined, type: TypeSchema): Manager[] {
  const managers = decodeManagers(live?.metadata?.managedFields) ?? []
  if (!live || managers.length > 0) return managers
  const fields = stripUnmanaged(compareObjects({}, content(live), type).changed)
  if (!fields) return []
  const manager: Manager = {
    manager: BEFORE_FIRST_APPLY,
    operation: 'Update',
    apiVersion: live.apiVersion ?? '',
    subresource: '',
    time: live.metadata?.creationTimestamp,
    fields,
  }
  return [manager]
}

function ownedBy(managers: readonly Manager[]): FieldSet | undefined {
  let owned: FieldSet | undefined
  for (const each of managers) owned = unionSets(owned, each.fields)
  return owned
}

function loseFields(
  others: readonly Manager[],
  conflicts: readonly Conflict[],
  removed: FieldSet | undefined,
): Manager[] {
  const kept: Manager[] = []
  for (const each of others) {
    const taken = conflicts.find((conflict) => conflict.owner === each)?.fields
    const left = withFields(each, subtractSets(each.fields, unionSets(taken, removed)))
    if (left) kept.push(left)
  }
  return kept
}

function ownEntry(
  last: Manager | undefined,
  self: Omit<Manager, 'fields' | 'time'>,
  claimed: FieldSet | undefined,
  now: Date,
  isUnchanged: boolean,
): Manager | undefined {
  if (!claimed) return undefined
  const isKept = last && isUnchanged && last.apiVersion === self.apiVersion && withFields(last, claimed) === last
  if (isKept) return last
  // The time is that of the last change to the object; who only joins the owners has none.
  return { ...self, time: isUnchanged ? last?.time : timestamp(now), fields: claimed }
}

function withManagers(
  live: KubeObject | undefined,
  merged: KubeObject,
  before: readonly Manager[],
  after: readonly Manager[],
): KubeObject {
  const isSameOwners = after.length === before.length && after.every((each) => before.includes(each))
  if (live?.metadata?.managedFields && isSameOwners && jsonEqual(content(live), merged)) return live
  const entries: ManagedFieldsEntry[] = encodeManagers(after)
  return { ...merged, metadata: { ...merged.metadata, ...(entries.length > 0 && { managedFields: entries }) } }
}

/** kubectl moves from client-side to server-side apply without conflicts about what it applied itself. */
function isCoveredByLastApplied(conflicts: readonly Conflict[], input: ApplyInput, type: TypeSchema): boolean {
  if (input.manager !== 'kubectl') return false
  const last = lastApplied(input.live)
  const covered = last && appliedSet(last, type)
  return covered !== undefined && conflicts.every(({ fields }) => subtractSets(fields, covered) === undefined)
}

function lastApplied(live: KubeObject | undefined): KubeObject | undefined {
  const text = live?.metadata?.annotations?.[LAST_APPLIED]
  if (!text) return undefined
  try {
    const object: unknown = JSON.parse(text)
    return isRecord(object) ? object : undefined
  } catch {
    return undefined // an annotation every client may write; one that cannot be read covers nothing
  }
}

/** An object that was client-side applied keeps its annotation in step, so that going back is possible. */
function withLastApplied(merged: KubeObject, input: ApplyInput): KubeObject {
  const annotations = merged.metadata?.annotations
  if (input.manager !== 'kubectl' || annotations?.[LAST_APPLIED] === undefined) return merged
  const config = content(input.applied)
  const { [LAST_APPLIED]: _old, ...rest } = config.metadata?.annotations ?? {}
  const { annotations: _all, ...others } = config.metadata ?? {}
  const metadata = Object.keys(rest).length > 0 ? { ...others, annotations: rest } : others
  const text = `${canonicalJson({ ...config, metadata })}\n`
  if (annotations[LAST_APPLIED] === text || input.applied.metadata?.annotations?.[LAST_APPLIED] !== undefined)
    return merged
  return { ...merged, metadata: { ...merged.metadata, annotations: { ...annotations, [LAST_APPLIED]: text } } }
}
