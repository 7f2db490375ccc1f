import type { KubeObject, ObjectMeta } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import { conflict, type FieldError, forbiddenField, invalid, invalidValue, notFound } from '../errors/api-error.js'
import { equalFields, equalJson, freezeJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { viewOf } from '../read/view.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { checkMetadata } from '../registry/names.js'
import type { ObjectStore, PendingWrite } from '../store/object-store.js'
import { type WriteRequest, writeContext } from './create-object.js'
import { dropUnknownFields, warningsOf } from './field-checks.js'
import { dropEmptyMetadata, dropRepeatedOwners, type Identified } from './identity.js'
import { recordOwnership } from './ownership.js'

export interface UpdateTarget {
  readonly namespace: string
  readonly name: string
  /** `''` is the object itself; `status` changes only the status. */
  readonly subresource: string
}

export interface UpdateOptions {
  /** A replacement of a kind that locks optimistically must name the version it replaces. */
  readonly isReplace?: boolean
  /** Ownership has been worked out already, by server-side apply. */
  readonly keepsManagedFields?: boolean
  /** The object comes with the server itself and is known to be valid. */
  readonly isTrusted?: boolean
}

/**
 * Brings an object to a new state. `change` gets the newest state, frozen, and returns a fresh one; it may throw to
 * refuse. A result equal to what is stored writes nothing. Synchronous up to durability, so nothing can come in between.
 */
export function updateObject(
  context: ServerContext,
  kind: KindDefinition,
  target: UpdateTarget,
  request: WriteRequest,
  change: (current: JsonObject) => Identified,
  options: UpdateOptions = {},
): PendingWrite {
  const { store, clock } = context
  const live = store.collection(kind.collection).findHead(target.namespace, target.name)
  if (!live) throw notFound(kind, target.name)
  const old = viewOf(kind, live) as JsonObject & { metadata: ObjectMeta }
  const now = clock.now()

  let next = change(old)
  checkPreconditions(kind, target, next, old, options)
  const { managedFields } = next.metadata
  next = dropUnknownFields(kind, next, request) as Identified
  // An empty list, which is nothing elsewhere, asks for its owners to be forgotten.
  if (managedFields?.length === 0) next.metadata.managedFields = managedFields
  if (kind.schema) next = kind.schema.applyDefaults(next as JsonObject) as Identified
  next = isolate(kind, target.subresource, next, old)
  dropEmptyMetadata(next.metadata)
  dropRepeatedOwners(next.metadata, request.warnings)
  const forged = options.isTrusted ? [] : forgedDeletion(next.metadata, old.metadata)
  keepServerFields(next.metadata, old.metadata)
  if (target.subresource === '') {
    kind.defaults?.(next)
    kind.prepareUpdate?.(next, old, writeContext(context, now, request.user))
  } else if (target.subresource === 'status') {
    kind.prepareStatus?.(next, old)
  }
  bumpGeneration(kind, next, old)
  if (!options.isTrusted) {
    validateChange(kind, target, next, old, forged)
    if (target.subresource === '') request.warnings.push(...warningsOf(kind, next))
  }
  if (!options.keepsManagedFields) {
    const { manager } = request
    recordOwnership(kind, old, next, { manager, subresource: target.subresource, now })
  }

  const stored = (kind.fromVersion ? kind.fromVersion(next as KubeObject) : next) as KubeObject
  if (isFinished(kind, stored)) {
    return request.dryRun ? unwritten(store, stored) : store.remove(kind.collection, stored)
  }
  if (isSame(stored, live)) return unwritten(store, live)
  return request.dryRun ? unwritten(store, stored) : store.put(kind.collection, stored)
}

/** An answer without a write: it tells the head's state, so it waits until readers can see that too. */
const unwritten = (store: ObjectStore, object: KubeObject): PendingWrite => ({
  object: freezeJson(object),
  committed: store.settled(),
})

function checkPreconditions(
  kind: KindDefinition,
  target: UpdateTarget,
  next: Identified,
  old: { metadata: ObjectMeta },
  options: UpdateOptions,
): void {
  const { resourceVersion, uid } = next.metadata
  if (resourceVersion && resourceVersion !== '0') {
    if (resourceVersion !== old.metadata.resourceVersion) throw conflict(kind, target.name)
  } else if (options.isReplace && kind.needsVersionOnUpdate) {
    // Named by its plural here: storage refuses this, not the kind.
    throw invalid({ group: kind.group, kind: kind.plural }, target.name, [
      invalidValue('metadata.resourceVersion', 0, 'must be specified for an update'),
    ])
  }
  if (uid && uid !== old.metadata.uid) {
    if (!options.isReplace) throw invalid(kind, target.name, [invalidValue('metadata.uid', uid, 'field is immutable')])
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`
    throw conflict(kind, target.name, why)
  }
}

/** The part of `next` this request may change, on top of what it may not. */
function isolate(kind: KindDefinition, subresource: string, next: Identified, old: JsonObject): Identified {
  const previous = old as Identified
  if (subresource === 'status') {
    const metadata = kind.isCustom
      ? { ...previous.metadata, ...(next.metadata.managedFields ? { managedFields: next.metadata.managedFields } : {}) }
      : next.metadata
    const result: Identified = { ...previous, metadata: { ...metadata } }
    if (next.status === undefined) delete result.status
    else result.status = next.status
    return result
  }
  if (subresource === '' && kind.hasStatus) {
    if (previous.status === undefined) delete next.status
    else next.status = previous.status
  }
  return next
}

const SERVER_FIELDS = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'resourceVersion',
] as const

/** Only a delete marks an object as deleted; what a delete has set, updates may leave out. */
function forgedDeletion(next: ObjectMeta, old: ObjectMeta): FieldError[] {
  if (old.deletionTimestamp !== undefined) return []
  return (['deletionTimestamp', 'deletionGracePeriodSeconds'] as const).flatMap((field) => {
    const value = next[field] ?? undefined
    return value === undefined ? [] : [invalidValue(`metadata.${field}`, value, 'field is immutable')]
  })
}

function keepServerFields(next: ObjectMeta, old: ObjectMeta): void {
  delete next.selfLink
  for (const field of SERVER_FIELDS) {
    // Assigned through one loose view: the fields have different types, the value always comes from the same field.
    const target = next as Record<string, unknown>
    if (old[field] !== undefined) target[field] = old[field]
    else if (field in target) delete target[field]
  }
}

function bumpGeneration(kind: KindDefinition, next: Identified, old: JsonObject): void {
  if (kind.generation === 'none') return
  const isChanged =
    kind.generation === 'spec'
      ? !equalJson(next.spec, old.spec)
      : !equalFields(next, old, kind.hasStatus ? NOT_CONTENT_NOR_STATUS : NOT_CONTENT)
  if (isChanged) next.metadata.generation = (next.metadata.generation ?? 0) + 1
}

const NOT_CONTENT: ReadonlySet<string> = new Set(['metadata', 'apiVersion', 'kind'])
const NOT_CONTENT_NOR_STATUS: ReadonlySet<string> = new Set([...NOT_CONTENT, 'status'])

function validateChange(
  kind: KindDefinition,
  target: UpdateTarget,
  next: Identified,
  old: JsonObject,
  forged: readonly FieldError[],
): void {
  const errors: FieldError[] = [
    ...forged,
    ...checkMetadata(kind, next.metadata, (old as Identified).metadata),
    ...checkFinalizers(next.metadata, old as Identified),
  ]
  if (kind.schema) errors.push(...kind.schema.validate(next as JsonObject, old))
  if (target.subresource === '') errors.push(...(kind.validate?.(next as JsonObject, old) ?? []))
  if (target.subresource === 'status') errors.push(...(kind.validateStatus?.(next as JsonObject, old) ?? []))
  if (errors.length > 0) throw invalid(kind, target.name, errors)
}

function checkFinalizers(next: ObjectMeta, old: { metadata: ObjectMeta }): FieldError[] {
  if (!old.metadata.deletionTimestamp) return []
  const added = (next.finalizers ?? []).filter((finalizer) => !(old.metadata.finalizers ?? []).includes(finalizer))
  if (added.length === 0) return []
  const list = added.map((finalizer) => JSON.stringify(finalizer)).join(', ')
  const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`
  return [forbiddenField('metadata.finalizers', why)]
}

/** Whether a deleted object has nothing left that holds it. */
export function isFinished(kind: KindDefinition, object: KubeObject): boolean {
  const metadata = object.metadata ?? {}
  if (!metadata.deletionTimestamp || (metadata.finalizers?.length ?? 0) > 0) return false
  if ((metadata.deletionGracePeriodSeconds ?? 0) > 0) return false
  if (kind.collection !== 'namespaces') return true
  const spec = (object as { spec?: unknown }).spec
  return !(isJsonObject(spec) && Array.isArray(spec.finalizers) && spec.finalizers.length > 0)
}

/** Equality apart from the times in managedFields, which alone are no reason to write. */
function isSame(next: KubeObject, old: KubeObject): boolean {
  if (!equalFields(next as JsonObject, old as JsonObject, METADATA)) return false
  const { metadata = {} } = next
  const { metadata: before = {} } = old
  if (!equalFields(metadata as JsonObject, before as JsonObject, MANAGED_FIELDS)) return false
  const entries = metadata.managedFields ?? []
  const known = before.managedFields ?? []
  if (entries === known) return true
  return (
    entries.length === known.length &&
    entries.every((entry, index) => equalFields(entry as JsonObject, known[index] as JsonObject, TIME))
  )
}

const METADATA: ReadonlySet<string> = new Set(['metadata'])
const MANAGED_FIELDS: ReadonlySet<string> = new Set(['managedFields'])
const TIME: ReadonlySet<string> = new Set(['time'])
