import type { ScalarType } from '../../packages/resources/src/field-table.js'
import { type GoField, type GoPackage, readGoPackage } from './go-source.js'

/** Where the API packages of one Kubernetes release lie: directories of its three Go modules. */
export interface ModuleDirectories {
  api: string
  apimachinery: string
  apiextensions: string
}

export type ModelType =
  | { kind: 'scalar'; scalar: ScalarType }
  | { kind: 'ref'; ref: string }
  | { kind: 'array'; items: ModelType }
  | { kind: 'map'; values: ModelType }

export interface ModelField {
  name: string
  type: ModelType
  required: boolean
  pointer: boolean
  omitEmpty: boolean
  protoNumber?: number
  default?: unknown
  enum?: string[]
  listType?: string
  listMapKeys?: string[]
  mapType?: string
  patchStrategy?: string
  patchMergeKey?: string
}

export interface ModelStruct {
  name: string
  /** Own JSON fields in order of declaration; those of inlined structs are not repeated here. */
  fields: ModelField[]
  inlined: { type: string; protoNumber?: number }[]
  /** `+structType=atomic`: server-side apply owns it as one value. */
  atomic: boolean
}

export type Model = Map<string, ModelStruct>

const API_PACKAGES = [
  'core/v1',
  'apps/v1',
  'networking/v1',
  'coordination/v1',
  'discovery/v1',
  'events/v1',
  'authentication/v1',
  'authorization/v1',
  'policy/v1',
  'autoscaling/v1',
  'rbac/v1',
  'storage/v1',
  'node/v1',
  'admissionregistration/v1',
]

const SCALARS: Record<string, ScalarType> = {
  string: 'string',
  bool: 'boolean',
  int32: 'int32',
  int64: 'int64',
  int: 'int64',
  uint32: 'int64',
  uint64: 'int64',
  float64: 'double',
  '[]byte': 'bytes',
  byte: 'int32',
  'k8s.io/apimachinery/pkg/types.UID': 'string',
  'k8s.io/apimachinery/pkg/types.NodeName': 'string',
  'k8s.io/apimachinery/pkg/runtime.RawExtension': 'rawExtension',
  'k8s.io/apimachinery/pkg/api/resource.Quantity': 'quantity',
  'k8s.io/apimachinery/pkg/util/intstr.IntOrString': 'intOrString',
  'k8s.io/apimachinery/pkg/apis/meta/v1.Time': 'time',
  'k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime': 'microTime',
  'k8s.io/apimachinery/pkg/apis/meta/v1.Duration': 'duration',
  'k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1': 'fieldsV1',
  'k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON': 'json',
}

/** The API model of one release, every struct of the packages we know, keyed by its OpenAPI name. */
export function readKubernetesModel(directories: ModuleDirectories): Model {
  const packages = new Map<string, GoPackage>()
  const add = (path: string, directory: string): unknown => packages.set(path, readGoPackage(path, directory))
  for (const name of API_PACKAGES) add(`k8s.io/api/${name}`, `${directories.api}/${name}`)
  add('k8s.io/apimachinery/pkg/apis/meta/v1', `${directories.apimachinery}/pkg/apis/meta/v1`)
  const apiextensions = 'k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1'
  add(apiextensions, `${directories.apiextensions}/pkg/apis/apiextensions/v1`)

  const model: Model = new Map()
  for (const goPackage of packages.values()) {
    for (const struct of goPackage.structs.values()) {
      const name = openApiName(goPackage.path, struct.name)
      const type: ModelStruct = {
        name,
        fields: [],
        inlined: [],
        atomic: struct.markers.get('structType')?.[0] === 'atomic',
      }
      for (const field of struct.fields) addField(type, field, goPackage, packages)
      model.set(name, type)
    }
  }
  return model
}

/** `k8s.io/api/core/v1` and `Pod` → `io.k8s.api.core.v1.Pod`. */
export function openApiName(packagePath: string, name: string): string {
  return `${packagePath.replace(/^k8s\.io\//, 'io.k8s.').replaceAll('/', '.')}.${name}`
}

function addField(type: ModelStruct, field: GoField, goPackage: GoPackage, packages: Map<string, GoPackage>): void {
  if (field.json.inline) {
    const resolved = resolveType(field.goType, goPackage, packages)
    if (resolved.type.kind !== 'ref') throw new Error(`${type.name}: cannot inline ${field.goType}`)
    type.inlined.push({ type: resolved.type.ref, ...pick('protoNumber', field.protoNumber) })
    return
  }
  if (field.json.ignored) return
  const resolved = resolveType(field.goType, goPackage, packages)
  const marker = (name: string): string | undefined => field.markers.get(name)?.[0]
  const defaultText = marker('default')
  type.fields.push({
    name: field.json.name,
    type: resolved.type,
    required: isRequired(field),
    pointer: field.goType.startsWith('*'),
    omitEmpty: field.json.omitEmpty,
    ...pick('protoNumber', field.protoNumber),
    ...pick('default', defaultText === undefined ? undefined : parseDefault(defaultText, goPackage)),
    ...pick('enum', resolved.enum),
    ...pick('listType', marker('listType')),
    ...pick('listMapKeys', field.markers.get('listMapKey')),
    ...pick('mapType', marker('mapType') ?? marker('structType')),
    ...pick('patchStrategy', field.patchStrategy),
    ...pick('patchMergeKey', field.patchMergeKey),
  })
}

function isRequired(field: GoField): boolean {
  if (field.markers.has('required')) return true
  if (field.markers.has('optional')) return false
  return !field.json.omitEmpty
}

function parseDefault(text: string, goPackage: GoPackage): unknown {
  const reference = /^ref\((?:.*\.)?(\w+)\)$/.exec(text)
  if (reference) {
    const constant = goPackage.constants.get(reference[1] ?? '')
    if (!constant) throw new Error(`default refers to unknown constant ${text}`)
    return constant.value
  }
  return JSON.parse(text)
}

function resolveType(
  goType: string,
  from: GoPackage,
  packages: Map<string, GoPackage>,
): { type: ModelType; enum?: string[] } {
  const bare = goType.replace(/^\*/, '')
  const scalar = SCALARS[bare]
  if (scalar) return { type: { kind: 'scalar', scalar } }
  if (bare.startsWith('[]')) {
    const items = resolveType(bare.slice(2), from, packages)
    return { type: { kind: 'array', items: items.type }, ...pick('enum', items.enum) }
  }
  const map = /^map\[[\w.]+\](.*)$/.exec(bare)
  if (map?.[1]) return { type: { kind: 'map', values: resolveType(map[1], from, packages).type } }

  const [qualifier, name] = bare.includes('.') ? (bare.split('.') as [string, string]) : [undefined, bare]
  const path = qualifier === undefined ? from.path : from.imports.get(qualifier)
  // A type of Go's own library hides in structs no root reaches; one that is reached is reported by its name.
  if (path === undefined) return { type: { kind: 'ref', ref: bare } }
  const known = SCALARS[`${path}.${name}`]
  if (known) return { type: { kind: 'scalar', scalar: known } }
  const target = packages.get(path)
  const alias = target?.aliases.get(name)
  if (target && alias) {
    const values = alias.markers.has('enum') ? [...target.constants.values()].filter((c) => c.type === name) : []
    const resolved = resolveType(alias.goType, target, packages)
    return values.length > 0 ? { ...resolved, enum: values.map((c) => c.value).sort() } : resolved
  }
  return { type: { kind: 'ref', ref: openApiName(path, name) } }
}

function pick<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V })
}
