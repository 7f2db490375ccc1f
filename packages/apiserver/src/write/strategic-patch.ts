import { type FieldType, fieldTable, type TypeInfo } from '@corral/resources'
import { type PatchField, type PatchSchema, strategicMerge } from '../patch/index.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import type { JsonObject } from '../store/plain-json.js'

/** Applies a strategic merge patch by the kind's type in the field table. */
export function strategicPatch(kind: KindDefinition, current: JsonObject, patch: JsonObject): unknown {
  return strategicMerge(current, patch, schemaOf(fieldTable.forKind(kind.apiVersion, kind.kind)))
}

const schemas = new WeakMap<TypeInfo, PatchSchema>()

function schemaOf(type: TypeInfo | undefined): PatchSchema | undefined {
  if (!type) return undefined
  let schema = schemas.get(type)
  if (!schema) {
    schema = { field: (name) => patchField(type, name) }
    schemas.set(type, schema)
  }
  return schema
}

function patchField(type: TypeInfo, name: string): PatchField | undefined {
  const field = type.field(name)
  if (!field) return undefined
  const child = schemaOf(refOf(field.type))
  return {
    strategies: (field.patchStrategy ?? []) as PatchField['strategies'],
    ...(field.patchMergeKey ? { mergeKey: field.patchMergeKey } : {}),
    ...(child ? { child } : {}),
  }
}

function refOf(type: FieldType): TypeInfo | undefined {
  if (type.kind === 'ref') return fieldTable.find(type.ref)
  return type.kind === 'array' ? refOf(type.items) : undefined
}
