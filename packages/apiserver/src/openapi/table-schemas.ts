import type { FieldInfo, FieldTable, FieldType, ScalarType } from '@corral/resources'
import type { Schema } from './open-api-kind.js'

const INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString'
const EITHER: Schema = { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] }

const SCALARS: Readonly<Record<ScalarType, Schema>> = {
  string: { type: 'string' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  boolean: { type: 'boolean' },
  bytes: { type: 'string', format: 'byte' },
  double: { type: 'number', format: 'double' },
  quantity: { type: 'string' },
  intOrString: { $ref: `#/components/schemas/${INT_OR_STRING}` },
  time: { type: 'string', format: 'date-time' },
  microTime: { type: 'string', format: 'date-time' },
  duration: { type: 'string' },
  fieldsV1: { type: 'object' },
  rawExtension: { type: 'object' },
  json: {},
}

/** Adds a type of the table and everything it refers to. */
export function addTableSchemas(schemas: Record<string, Schema>, typeName: string, table: FieldTable): void {
  if (schemas[typeName]) return
  const type = table.find(typeName)
  if (!type) return
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  const schema: Schema = type.either ? {} : { type: 'object', properties }
  schemas[typeName] = schema
  if (type.either) return
  for (const field of type.fields) {
    properties[field.name] = fieldSchema(field)
    if (field.required) required.push(field.name)
    for (const ref of refsOf(field.type)) {
      if (ref === INT_OR_STRING) schemas[ref] ??= EITHER
      else addTableSchemas(schemas, ref, table)
    }
  }
  if (required.length > 0) schema.required = required
  if (type.atomic) schema['x-kubernetes-map-type'] = 'atomic'
}

/** A reference to a schema of the same document. */
export function refTo(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` }
}

function fieldSchema(field: FieldInfo): Schema {
  const schema = typeSchema(field.type)
  if (field.enum) {
    if (field.type.kind === 'array') schema.items = { ...(schema.items as Schema), enum: field.enum }
    else schema.enum = field.enum
  }
  if (field.default !== undefined) schema.default = field.default
  if (field.listType) schema['x-kubernetes-list-type'] = field.listType
  if (field.listMapKeys) schema['x-kubernetes-list-map-keys'] = field.listMapKeys
  if (field.mapType) schema['x-kubernetes-map-type'] = field.mapType
  return schema
}

function typeSchema(type: FieldType): Schema {
  switch (type.kind) {
    case 'scalar':
      return { ...SCALARS[type.scalar] }
    case 'ref':
      return refTo(type.ref)
    case 'array':
      return { type: 'array', items: typeSchema(type.items) }
    case 'map':
      return { type: 'object', additionalProperties: typeSchema(type.values) }
  }
}

function refsOf(type: FieldType): string[] {
  if (type.kind === 'ref') return [type.ref]
  if (type.kind === 'scalar') return type.scalar === 'intOrString' ? [INT_OR_STRING] : []
  if (type.kind === 'array') return refsOf(type.items)
  return type.kind === 'map' ? refsOf(type.values) : []
}
