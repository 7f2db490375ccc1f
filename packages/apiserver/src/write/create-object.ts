import { randomInt, randomUUID } from 'node:crypto'
import type { ApiUser } from '@corral/ports'
import type { KubeObject, ObjectMeta } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import { alreadyExists, apiError, forbidden, invalid, notFound, required } from '../errors/api-error.js'
import { freezeJson, type JsonObject } from '../objects/plain-json.js'
import { timestamp } from '../objects/timestamps.js'
import { defaultStorageClass } from '../registry/default-storage-class.js'
import type { KindDefinition, WriteContext } from '../registry/kind-definition.js'
import { checkGenerateName, checkMetadata, checkName } from '../registry/names.js'
import type { FieldValidation } from '../request/query.js'
import type { PendingWrite } from '../store/object-store.js'
import { dropUnknownFields, warningsOf } from './field-checks.js'
import { dropEmptyMetadata, dropRepeatedOwners, type Identified } from './identity.js'
import { recordOwnership } from './ownership.js'

export interface WriteRequest {
  readonly user: ApiUser
  readonly manager: string
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidation
  /** Collects what the caller should be told besides the result. */
  readonly warnings: string[]
  /** Fields that stood twice in the body; undefined where duplicates are not reported. */
  readonly duplicates?: string[] | undefined
}

export interface CreateOptions {
  /** Ownership has been worked out already, by server-side apply. */
  readonly keepsManagedFields?: boolean
  /** The object comes with the server itself and is known to be valid. */
  readonly isTrusted?: boolean
}

/** Creates the object, which is taken over. Everything is decided synchronously; only durability is awaited. */
export function createObject(
  context: ServerContext,
  kind: KindDefinition,
  body: Identified,
  request: WriteRequest,
  options: CreateOptions = {},
): PendingWrite {
  const { store, clock } = context
  const now = clock.now()
  const pruned = dropUnknownFields(kind, body, request)
  const object = (kind.schema ? kind.schema.applyDefaults(pruned) : pruned) as Identified
  checkNamespace(context, kind, object.metadata)
  if (object.metadata.resourceVersion && object.metadata.resourceVersion !== '0') {
    throw apiError(400, 'BadRequest', 'resourceVersion should not be set on objects to be created')
  }
  const isGenerated = stampName(kind, object.metadata)
  stampMetadata(kind, object.metadata, now, options.keepsManagedFields ?? false)
  if (kind.hasStatus && kind.isCustom) delete object.status
  kind.defaults?.(object)
  dropEmptyMetadata(object.metadata)
  dropRepeatedOwners(object.metadata, request.warnings)
  // Fields that the server adds from here on have no owner.
  if (!options.keepsManagedFields) {
    recordOwnership(kind, undefined, object, { manager: request.manager, subresource: '', now })
  }
  kind.prepareCreate?.(object, writeContext(context, now, request.user))
  if (!options.isTrusted) {
    validateNew(kind, object)
    request.warnings.push(...warningsOf(kind, object))
  }

  const collection = store.collection(kind.collection)
  const namespace = object.metadata.namespace ?? ''
  for (let attempt = 0; collection.findHead(namespace, object.metadata.name!); attempt++) {
    if (!isGenerated) throw alreadyExists(kind, object.metadata.name!)
    if (attempt === 8) {
      const { status } = alreadyExists(kind, object.metadata.name!)
      throw apiError(409, 'AlreadyExists', status.message!, { ...status.details, retryAfterSeconds: 1 })
    }
    object.metadata.name = generateName(object.metadata.generateName!)
  }
  const stored = (kind.fromVersion ? kind.fromVersion(object as KubeObject) : object) as KubeObject
  if (request.dryRun) return { object: freezeJson(stored), committed: store.settled() }
  return store.put(kind.collection, stored)
}

/** What hooks get to know. */
export function writeContext(context: ServerContext, now: Date, user: ApiUser): WriteContext {
  return {
    now,
    user,
    allocateClusterIp: (wanted) => context.clusterIps.allocate(wanted),
    findRuntimeClass: (name) => context.store.collection(RUNTIME_CLASSES).findHead('', name),
    defaultStorageClass: () => defaultStorageClass(context.store.collection(STORAGE_CLASSES).list()),
  }
}

const RUNTIME_CLASSES = 'runtimeclasses.node.k8s.io'
const STORAGE_CLASSES = 'storageclasses.storage.k8s.io'

const namespaceTarget = { group: '', plural: 'namespaces', kind: 'Namespace' }

function checkNamespace({ store }: ServerContext, kind: KindDefinition, metadata: ObjectMeta): void {
  if (!kind.namespaced) return
  const name = metadata.namespace ?? ''
  const namespace = store.collection('namespaces').findHead('', name)
  if (!namespace) throw notFound(namespaceTarget, name)
  if (!namespace.metadata?.deletionTimestamp) return
  const why = `unable to create new content in namespace ${name} because it is being terminated`
  throw forbidden(kind, metadata.name ?? '', why, [
    { reason: 'NamespaceTerminating', message: `namespace ${name} is being terminated`, field: 'metadata.namespace' },
  ])
}

const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const SUFFIX_LENGTH = 5
const BASE_LENGTH = 58

function generateName(base: string): string {
  let suffix = ''
  for (let index = 0; index < SUFFIX_LENGTH; index++) suffix += SUFFIX_ALPHABET[randomInt(SUFFIX_ALPHABET.length)]
  return base.slice(0, BASE_LENGTH) + suffix
}

/** Makes a name from `generateName` where none is given; whether it did. */
function stampName(kind: KindDefinition, metadata: ObjectMeta): boolean {
  if (metadata.name) return false
  if (!metadata.generateName) {
    throw invalid(kind, '', [required('metadata.name', 'name or generateName is required')])
  }
  metadata.name = generateName(metadata.generateName)
  return true
}

function stampMetadata(kind: KindDefinition, metadata: ObjectMeta, now: Date, keepsManagedFields: boolean): void {
  metadata.uid = randomUUID()
  metadata.creationTimestamp = timestamp(now)
  delete metadata.resourceVersion
  delete metadata.deletionTimestamp
  delete metadata.deletionGracePeriodSeconds
  delete metadata.selfLink
  if (!keepsManagedFields) delete metadata.managedFields
  if (kind.generation === 'none') delete metadata.generation
  else metadata.generation = 1
}

function validateNew(kind: KindDefinition, object: Identified): void {
  const { generateName } = object.metadata
  const errors = [
    ...(generateName ? checkGenerateName(kind, generateName) : []),
    ...checkName(kind, object.metadata.name!),
    ...checkMetadata(kind, object.metadata),
    ...(kind.schema?.validate(object as JsonObject, undefined) ?? []),
    ...(kind.validate?.(object as JsonObject, undefined) ?? []),
  ]
  if (errors.length > 0) throw invalid(kind, object.metadata.name!, errors)
}
