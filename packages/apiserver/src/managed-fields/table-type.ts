import type { FieldInfo, FieldTable, FieldType } from '@corral/resources'
import { anyType, implicitLeafType, leafType, type RecordType, recordType, type TypeSchema } from './type-schema.js'

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

const caches = new WeakMap<FieldTable, Map<string, RecordType>>()

/** The type of a built-in kind, or of any type in the table, by its name. Unknown names give an untyped object. */
export function tableType(table: FieldTable, typeName: string): TypeSchema {
  let cache = caches.get(table)
  if (!cache) {
    cache = new Map()
    caches.set(table, cache)
  }
  return namedType(table, typeName, false, cache)
}

/** Metadata as every object has it. */
export function metadataType(table: FieldTable): TypeSchema {
  return tableType(table, OBJECT_META)
}

function namedType(table: FieldTable, name: string, implicit: boolean, cache: Map<string, RecordType>): TypeSchema {
  const info = table.find(name)
  if (!info) return anyType
  if (info.atomic || info.either) return implicit && info.atomic ? implicitLeafType : leafType
  const key = implicit ? `${name}!` : name
  let type = cache.get(key)
  if (!type) {
    type = recordType(
      (field) => {
        const found = info.field(field)
        return found ? fieldType(table, found, cache) : anyType
      },
      { implicit },
    )
    cache.set(key, type)
  }
  return type
}

function fieldType(table: FieldTable, field: FieldInfo, cache: Map<string, RecordType>): TypeSchema {
  const { type } = field
  switch (type.kind) {
    case 'scalar':
      return type.scalar === 'json' || type.scalar === 'rawExtension' ? anyType : leafType
    case 'ref':
      return field.mapType === 'atomic' ? leafType : namedType(table, type.ref, !field.pointer, cache)
    case 'map':
      if (field.mapType === 'atomic') return leafType
      return mapType(table, type.values, cache, !field.omitEmpty)
    case 'array':
      return arrayType(table, field, type.items, cache)
  }
}

function arrayType(table: FieldTable, field: FieldInfo, items: FieldType, cache: Map<string, RecordType>): TypeSchema {
  const implicit = !field.omitEmpty
  if (field.listType === 'set') return { kind: 'set', implicit }
  if (field.listType !== 'map' || items.kind !== 'ref') return leafType
  const keys = [...(field.listMapKeys ?? [])].sort()
  const info = table.find(items.ref)
  const keyDefaults: Record<string, unknown> = {}
  for (const key of keys) {
    const fallback = info?.field(key)?.default
    if (fallback !== undefined) keyDefaults[key] = fallback
  }
  return { kind: 'list', implicit, keys, keyDefaults, item: namedType(table, items.ref, false, cache) }
}

function elementType(table: FieldTable, type: FieldType, cache: Map<string, RecordType>): TypeSchema {
  if (type.kind === 'ref') return namedType(table, type.ref, false, cache)
  return type.kind === 'map' ? mapType(table, type.values, cache, false) : leafType
}

function mapType(table: FieldTable, values: FieldType, cache: Map<string, RecordType>, implicit: boolean): RecordType {
  return recordType(() => elementType(table, values, cache), { implicit, isEntry: () => true })
}
