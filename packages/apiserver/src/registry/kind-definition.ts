import type { ApiUser } from '@corral/ports'
import type { KubeObject, ResourceKind } from '@corral/resources'
import type { FieldError } from '../errors/api-error.js'
import type { JsonObject } from '../objects/plain-json.js'

/** A sub-resource as discovery shows it. */
export interface SubresourceDefinition {
  readonly name: string
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly verbs: readonly string[]
}

/** What hooks may know besides the object: the time, who writes, and how to reserve what must be unique. */
export interface WriteContext {
  readonly now: Date
  readonly user: ApiUser
  /** A free cluster IP, or the wanted one; throws when that one is taken. */
  allocateClusterIp(wanted: string | undefined): string
  /** The class of volumes for claims that name none; undefined where there is none. */
  defaultStorageClass(): string | undefined
  findRuntimeClass(name: string): KubeObject | undefined
}

/** Paths of the scale sub-resource inside the object, without the leading dot. */
export interface ScalePaths {
  readonly specReplicas: string
  readonly statusReplicas: string
  readonly selector?: string
}

export interface PrinterColumn {
  name: string
  type: string
  jsonPath: string
  format?: string
  description?: string
  priority?: number
}

/** Checks and completes a body against the kind's schema; `unknown` are the paths of fields the schema does not have. */
export interface KindSchema {
  /** Loads the engines its patterns and rules need; undefined once that is done. Await it before the rest. */
  prepare(): Promise<void> | undefined
  prune(object: JsonObject): { value: JsonObject; unknown: readonly string[] }
  applyDefaults(object: JsonObject): JsonObject
  validate(object: JsonObject, old: JsonObject | undefined): readonly FieldError[]
  /** The version's `openAPIV3Schema`, for OpenAPI and field ownership. */
  readonly raw: JsonObject
}

/**
 * Everything the server knows about one kind in one version. Built-in kinds and those of CustomResourceDefinitions look
 * the same from here on. Hooks change the object they are given, which is always a fresh copy.
 */
export interface KindDefinition extends ResourceKind {
  readonly singular: string
  readonly listKind: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly verbs: readonly string[]
  readonly subresources: readonly SubresourceDefinition[]
  /** Where its objects are stored; two kinds may be views of one collection. */
  readonly collection: string
  /** The group a 422 names, where it is not the kind's own: that of the version in which objects are stored. */
  readonly validatedAs?: string
  readonly isCustom: boolean
  readonly hasStatus: boolean
  /** Whether generation counts: of `spec`, or of everything but metadata and status, or not at all. */
  readonly generation: 'none' | 'spec' | 'content'
  readonly nameRule: 'subdomain' | 'label' | 'label1035' | 'path'
  readonly answersDeleteWithObject: boolean
  readonly needsVersionOnUpdate: boolean
  readonly createsOnUpdate: boolean
  /** Said in a Warning header on every write: stored but not acted upon, or deprecated. */
  readonly warning?: string
  readonly warnsOnRead: boolean
  readonly scale?: ScalePaths
  readonly printerColumns?: readonly PrinterColumn[]
  readonly schema?: KindSchema
  readonly selectable: Readonly<Record<string, (object: KubeObject) => string>>
  /** Whether a stored object is known to be what `toVersion` would make of it. */
  isOwnView?(stored: KubeObject): boolean
  /** From what is stored to this version, and back. Absent: stored as is. */
  toVersion?(stored: KubeObject): KubeObject
  fromVersion?(object: KubeObject): KubeObject
  /** Fetches what `toVersion` will need from a webhook for these objects; absent without one. */
  loadConversions?(stored: readonly KubeObject[]): Promise<void>
  defaults?(object: JsonObject): void
  prepareCreate?(object: JsonObject, context: WriteContext): void
  prepareUpdate?(next: JsonObject, old: JsonObject, context: WriteContext): void
  /** Brings a status into the one form that is stored. */
  prepareStatus?(next: JsonObject, old: JsonObject): void
  validateStatus?(next: JsonObject, old: JsonObject): FieldError[]
  /** Changes the state a delete leaves behind while finalizers hold the object. Gets a frozen object, returns another. */
  prepareDelete?(marked: JsonObject): JsonObject
  validate?(object: JsonObject, old: JsonObject | undefined): FieldError[]
  /** What the writer of a valid object should know all the same. */
  warnings?(object: JsonObject): string[]
  /** Seconds of grace a delete gets when the caller names `requested`; 0 removes at once. */
  graceSeconds?(object: JsonObject, requested: number | undefined): number
  /** Kinds that are answered and never stored. */
  review?(body: JsonObject, context: ReviewContext): Promise<JsonObject> | JsonObject
}

export interface ReviewContext {
  readonly user: ApiUser
  readonly namespace: string
  verifyToken(token: string): Promise<ApiUser | undefined> | ApiUser | undefined
}

/** What can be done with most kinds. */
export const ALL_VERBS: readonly string[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
]

type Optional = Partial<Omit<KindDefinition, 'group' | 'version' | 'apiVersion' | 'kind' | 'plural' | 'namespaced'>>

/** A kind with everything not said filled in the way most kinds have it. */
export function describeKind(base: ResourceKind, options: Optional = {}): KindDefinition {
  const singular = base.kind.toLowerCase()
  return {
    singular,
    listKind: `${base.kind}List`,
    shortNames: [],
    categories: [],
    verbs: ALL_VERBS,
    collection: base.group ? `${base.plural}.${base.group}` : base.plural,
    isCustom: false,
    hasStatus: false,
    generation: 'none',
    nameRule: 'subdomain',
    answersDeleteWithObject: false,
    needsVersionOnUpdate: false,
    createsOnUpdate: false,
    warnsOnRead: false,
    selectable: {},
    ...options,
    group: base.group,
    version: base.version,
    apiVersion: base.apiVersion,
    kind: base.kind,
    plural: base.plural,
    namespaced: base.namespaced,
    subresources: [...statusRow(base, options), ...(options.subresources ?? [])],
  }
}

function statusRow(base: ResourceKind, options: Optional): SubresourceDefinition[] {
  if (!options.hasStatus) return []
  const { group, version, kind } = base
  return [{ name: 'status', group, version, kind, verbs: ['get', 'patch', 'update'] }]
}
