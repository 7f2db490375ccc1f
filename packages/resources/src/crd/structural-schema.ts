import { type FieldInfo, type FieldType, fieldTable, type ScalarType, type TypeInfo } from '../field-table.js'
import type { JSONSchemaProps, JsonValue } from '../generated/core-types.js'

const QUANTITY_PATTERN =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$'
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

/** Defaults that Go states by a constant's name; upstream's CRDs leave them out, and so do ours. */
const CONSTANT_DEFAULTS = new Set(['AzureDiskVolumeSource.cachingMode', 'AzureDiskVolumeSource.kind'])

/** The structural schema of a Kubernetes type, as a CRD embeds it. Recursive types are not supported. */
export function structuralSchemaOf(typeName: string): JSONSchemaProps {
  // Nested metadata stays open: a CRD may not restrict it further than the server does.
  if (typeName === OBJECT_META) return { type: 'object' }
  const type = fieldTable.type(typeName)
  const required = type.fields.filter((field) => field.required).map((field) => field.name)
  return {
    type: 'object',
    properties: Object.fromEntries(type.fields.map((field) => [field.name, fieldSchema(field, type)])),
    ...(required.length > 0 ? { required: required.sort() } : {}),
    ...(isAtomic(type) ? { 'x-kubernetes-map-type': 'atomic' } : {}),
  }
}

/** A struct that inlines an atomic one is atomic in a CRD, where the two are one schema node. */
function isAtomic(type: TypeInfo): boolean {
  return type.atomic || [...type.protoFields.values()].some((f) => 'inlined' in f && fieldTable.type(f.inlined).atomic)
}

function fieldSchema(field: FieldInfo, owner: TypeInfo): JSONSchemaProps {
  const path = `${owner.name.slice(owner.name.lastIndexOf('.') + 1)}.${field.name}`
  const hasDefault = field.default !== undefined && !CONSTANT_DEFAULTS.has(path)
  return {
    ...schemaOfType(field.type),
    ...(hasDefault ? { default: field.default as JsonValue } : {}),
    ...(field.listType === undefined ? {} : { 'x-kubernetes-list-type': field.listType }),
    ...(field.listMapKeys === undefined ? {} : { 'x-kubernetes-list-map-keys': [...field.listMapKeys] }),
    ...(field.mapType === undefined ? {} : { 'x-kubernetes-map-type': field.mapType }),
  }
}

function schemaOfType(type: FieldType): JSONSchemaProps {
  switch (type.kind) {
    case 'array':
      return { type: 'array', items: schemaOfType(type.items) }
    case 'map':
      return { type: 'object', additionalProperties: schemaOfType(type.values) }
    case 'ref':
      return structuralSchemaOf(type.ref)
    case 'scalar':
      return scalarSchema(type.scalar)
  }
}

function scalarSchema(scalar: ScalarType): JSONSchemaProps {
  switch (scalar) {
    case 'boolean':
      return { type: 'boolean' }
    case 'int32':
    case 'int64':
      return { type: 'integer', format: scalar }
    case 'double':
      return { type: 'number', format: 'double' }
    case 'bytes':
      return { type: 'string', format: 'byte' }
    case 'time':
    case 'microTime':
      return { type: 'string', format: 'date-time' }
    case 'quantity':
      return { ...intOrString(), pattern: QUANTITY_PATTERN }
    case 'intOrString':
      return intOrString()
    case 'fieldsV1':
    case 'rawExtension':
      return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
    case 'json':
      return { 'x-kubernetes-preserve-unknown-fields': true }
    case 'string':
    case 'duration':
      return { type: 'string' }
  }
}

function intOrString(): JSONSchemaProps {
  return { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true }
}
