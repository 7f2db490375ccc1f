import { CustomResourceDefinitions } from '@corral/resources'
import { compileCelRules } from '../cel/index.js'
import type { FieldError } from '../errors/api-error.js'
import { equalJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { timestamp } from '../objects/timestamps.js'
import { describeKind, type KindDefinition } from '../registry/kind-definition.js'
import { validateCrd } from '../schema/index.js'
import { objectOf } from '../validation/rules.js'
import { versionSchemas } from './prepare-definition.js'

const CRD_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io'

const TERMINATING = {
  type: 'Terminating',
  status: 'True',
  reason: 'InstanceDeletionPending',
  message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
} as const

/** CustomResourceDefinitions: established the moment they are stored, since compiling happens in the same turn. */
export const crdKind: KindDefinition = describeKind(CustomResourceDefinitions, {
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  hasStatus: true,
  generation: 'spec',
  needsVersionOnUpdate: true,
  defaults(crd) {
    const spec = isJsonObject(crd.spec) ? crd.spec : {}
    crd.spec = spec
    const names = isJsonObject(spec.names) ? spec.names : {}
    spec.names = names
    if (typeof names.kind === 'string') {
      names.singular ??= names.kind.toLowerCase()
      names.listKind ??= `${names.kind}List`
    }
    if (!isJsonObject(spec.conversion)) spec.conversion = { strategy: 'None' }
    const { service } = objectOf(objectOf(objectOf(spec.conversion).webhook).clientConfig)
    if (isJsonObject(service)) service.port ??= 443
  },
  prepareCreate(crd, { now }) {
    crd.status = establishedStatus(crd, undefined, now)
  },
  prepareDelete(crd) {
    const metadata = crd.metadata as { finalizers?: string[]; deletionTimestamp: string }
    const finalizers = [...new Set([...(metadata.finalizers ?? []), CRD_FINALIZER])]
    const status = objectOf(crd.status)
    const conditions = Array.isArray(status.conditions) ? status.conditions : []
    const terminating = { ...TERMINATING, lastTransitionTime: metadata.deletionTimestamp }
    return {
      ...crd,
      metadata: { ...metadata, finalizers },
      status: { ...status, conditions: [...conditions, terminating] },
    }
  },
  prepareUpdate(next, old, { now }) {
    next.status = establishedStatus(next, isJsonObject(old.status) ? old.status : undefined, now)
  },
  validate(crd, old) {
    // Compiling is the expensive part, and only a change of the spec can make it fail.
    if (old && equalJson(crd.spec, old.spec)) return []
    const errors: FieldError[] = validateCrd(crd)
    if (errors.length > 0) return errors
    return versionSchemas(crd).flatMap(({ schema, path }) => [...compileCelRules(schema, path).compileErrors])
  },
})

/** Names accepted and established, storage versions remembered; times of conditions that hold already stay. */
function establishedStatus(crd: JsonObject, old: JsonObject | undefined, now: Date): JsonObject {
  const spec = crd.spec as { names: JsonObject; versions?: { name: string; storage?: boolean }[] }
  const storage = (Array.isArray(spec.versions) ? spec.versions : []).find((version) => version?.storage)?.name
  const before = Array.isArray(old?.storedVersions) ? (old.storedVersions as string[]) : []
  const lastTransitionTime = timestamp(now)
  const fresh = [
    { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found', lastTransitionTime },
    {
      type: 'Established',
      status: 'True',
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
      lastTransitionTime,
    },
  ]
  const conditions = Array.isArray(old?.conditions) && old.conditions.length > 0 ? old.conditions : fresh
  return {
    conditions,
    acceptedNames: { ...spec.names },
    storedVersions: storage && !before.includes(storage) ? [...before, storage] : before,
  }
}
