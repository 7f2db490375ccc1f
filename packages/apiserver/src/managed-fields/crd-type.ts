import type { FieldTable } from '@corral/resources'
import { type JsonSchema, mapValueSchema } from '../schema/json-schema.js'
import { metadataType } from './table-type.js'
import { anyType, leafType, recordType, type TypeSchema } from './type-schema.js'

/** The type of a CRD version from its structural schema; metadata comes from the table. */
export function crdType(schema: JsonSchema, table: FieldTable): TypeSchema {
  return recordType((name) => {
    if (name === 'metadata') return metadataType(table)
    if (name === 'apiVersion' || name === 'kind') return leafType
    return propertyType(schema, name, table)
  })
}

function propertyType(schema: JsonSchema, name: string, table: FieldTable): TypeSchema {
  const properties = schema.properties
  if (properties && Object.hasOwn(properties, name)) return schemaType(properties[name]!, table)
  const values = mapValueSchema(schema)
  return values ? schemaType(values, table) : anyType
}

function schemaType(schema: JsonSchema, table: FieldTable): TypeSchema {
  if (schema['x-kubernetes-embedded-resource'] && schema['x-kubernetes-map-type'] !== 'atomic') {
    return crdType(schema, table)
  }
  if (schema.type === 'object') {
    if (schema['x-kubernetes-map-type'] === 'atomic') return leafType
    const isEntry = (name: string): boolean => !schema.properties || !Object.hasOwn(schema.properties, name)
    return recordType((name) => propertyType(schema, name, table), { isEntry })
  }
  if (schema.type === 'array') return listType(schema, table)
  return schema['x-kubernetes-preserve-unknown-fields'] ? anyType : leafType
}

function listType(schema: JsonSchema, table: FieldTable): TypeSchema {
  const type = schema['x-kubernetes-list-type']
  if (type === 'set') return { kind: 'set', implicit: false }
  if (type !== 'map' || !schema.items) return leafType
  const keys = [...(schema['x-kubernetes-list-map-keys'] ?? [])].sort()
  const keyDefaults: Record<string, unknown> = {}
  for (const key of keys) {
    const fallback = schema.items.properties?.[key]?.default
    if (fallback !== undefined) keyDefaults[key] = fallback
  }
  return { kind: 'list', implicit: false, keys, keyDefaults, item: schemaType(schema.items, table) }
}
