import type { KubeObject, ObjectMeta } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import { badRequest, conflict, forbidden, invalid, invalidValue, notFound, notSupported } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { timestamp } from '../objects/timestamps.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { queryFlag, queryInteger } from '../request/query.js'
import type { PendingWrite } from '../store/object-store.js'
import { isFinished } from './update-object.js'

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly dryRun: boolean
  /** The older way to name a policy. */
  readonly orphanDependents?: boolean
}

/** What became of a delete: gone, or kept until its finalizers or its grace are over. */
export interface DeleteOutcome extends PendingWrite {
  readonly isRemoved: boolean
}

/**
 * Reads the options from the body, else from the query. A dry run asked for in either place is one: a real server
 * does not look at the query then, and deletes.
 */
export function parseDeleteOptions(query: URLSearchParams, body: JsonObject | undefined): DeleteOptions {
  if (body?.kind && body.kind !== 'DeleteOptions')
    throw badRequest(`the body of a delete holds DeleteOptions, not ${String(body.kind)}`)
  const preconditions = isJsonObject(body?.preconditions) ? body.preconditions : {}
  const bodyDryRun = Array.isArray(body?.dryRun) ? body.dryRun : []
  const dryRun = [...bodyDryRun, ...query.getAll('dryRun')]
  const { gracePeriodSeconds: grace, propagationPolicy: policy, orphanDependents: legacy } = body ?? inQuery(query)
  const errors = []
  if (dryRun.some((value) => value !== 'All')) errors.push(notSupported('dryRun', dryRun, ['All']))
  if (policy && !['Background', 'Foreground', 'Orphan'].includes(String(policy))) {
    errors.push(notSupported('propagationPolicy', policy, ['Foreground', 'Background', 'Orphan', 'nil']))
  }
  if (policy && legacy !== undefined && legacy !== null) {
    errors.push(
      invalidValue('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'),
    )
  }
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', errors)
  if (grace !== undefined && grace !== null && typeof grace !== 'number') {
    throw badRequest('gracePeriodSeconds must be a number')
  }
  return {
    dryRun: dryRun.length > 0,
    ...(typeof legacy === 'boolean' ? { orphanDependents: legacy } : {}),
    ...(typeof grace === 'number' ? { gracePeriodSeconds: grace } : {}),
    ...(policy ? { propagationPolicy: String(policy) } : legacy === true ? { propagationPolicy: 'Orphan' } : {}),
    ...(typeof preconditions.uid === 'string' ? { uid: preconditions.uid } : {}),
    ...(typeof preconditions.resourceVersion === 'string' ? { resourceVersion: preconditions.resourceVersion } : {}),
  }
}

function inQuery(query: URLSearchParams): JsonObject {
  return {
    gracePeriodSeconds: queryInteger(query, 'gracePeriodSeconds'),
    propagationPolicy: query.get('propagationPolicy'),
    orphanDependents: query.has('orphanDependents') ? queryFlag(query, 'orphanDependents') : undefined,
  }
}

const IMMORTAL = ['default', 'kube-system', 'kube-public']

/** Deletes an object, at once or by marking it. Synchronous up to durability. */
export function deleteObject(
  context: ServerContext,
  kind: KindDefinition,
  namespace: string,
  name: string,
  options: DeleteOptions,
): DeleteOutcome {
  const live = context.store.collection(kind.collection).findHead(namespace, name)
  if (!live) throw notFound(kind, name)
  if (kind.collection === 'namespaces' && IMMORTAL.includes(name))
    throw forbidden(kind, name, 'this namespace may not be deleted')
  checkPreconditions(kind, name, live.metadata ?? {}, options)
  const marked = markDeleted(kind, live, options, context.clock.now())
  if (isFinished(kind, marked)) {
    if (options.dryRun) return { object: marked, committed: context.store.settled(), isRemoved: true }
    return { ...context.store.remove(kind.collection, marked), isRemoved: true }
  }
  if (marked === live || options.dryRun) {
    return { object: marked, committed: context.store.settled(), isRemoved: false }
  }
  return { ...context.store.put(kind.collection, marked), isRemoved: false }
}

function checkPreconditions(kind: KindDefinition, name: string, metadata: ObjectMeta, options: DeleteOptions): void {
  if (options.uid !== undefined && options.uid !== metadata.uid) {
    const why = `the UID in the precondition (${options.uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`
    throw conflict({ ...kind, group: '', plural: kind.kind }, name, why)
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== metadata.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`
    throw conflict({ ...kind, group: '', plural: kind.kind }, name, why)
  }
}

/** The object with its deletion recorded; the very same object when a repeated delete changes nothing. */
function markDeleted(kind: KindDefinition, live: KubeObject, options: DeleteOptions, now: Date): KubeObject {
  const metadata = live.metadata ?? {}
  const grace = kind.graceSeconds?.(live as JsonObject, options.gracePeriodSeconds) ?? 0
  const finalizers = addPropagation(metadata, options.propagationPolicy)
  if (metadata.deletionTimestamp) {
    const left = metadata.deletionGracePeriodSeconds ?? 0
    const isSameFinalizers = finalizers.length === (metadata.finalizers?.length ?? 0)
    // A later delete may shorten the grace, never lengthen it.
    if (grace >= left && isSameFinalizers) return live
    return withMetadata(live, {
      ...metadata,
      ...(finalizers.length > 0 ? { finalizers } : {}),
      ...(grace < left
        ? { deletionTimestamp: timestamp(new Date(now.getTime() + grace * 1000)), deletionGracePeriodSeconds: grace }
        : {}),
    })
  }
  const marked = withMetadata(live, {
    ...metadata,
    ...(finalizers.length > 0 ? { finalizers } : {}),
    ...(metadata.generation ? { generation: metadata.generation + 1 } : {}),
    deletionTimestamp: timestamp(new Date(now.getTime() + grace * 1000)),
    deletionGracePeriodSeconds: grace,
  })
  return kind.prepareDelete ? (kind.prepareDelete(marked as JsonObject) as KubeObject) : marked
}

const FOREGROUND = 'foregroundDeletion'
const ORPHAN = 'orphan'

/** Finalizers that ask the garbage collector for the wanted propagation; `Background` needs none. */
function addPropagation(metadata: ObjectMeta, policy: string | undefined): string[] {
  const finalizers = metadata.finalizers ?? []
  if (policy === undefined) return [...finalizers]
  const others = finalizers.filter((finalizer) => finalizer !== FOREGROUND && finalizer !== ORPHAN)
  if (policy === 'Foreground') return [...others, FOREGROUND]
  return policy === 'Orphan' ? [...others, ORPHAN] : others
}

const withMetadata = (object: KubeObject, metadata: ObjectMeta): KubeObject => ({ ...object, metadata })
