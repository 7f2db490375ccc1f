import type { FieldInfo, FieldTable, FieldType } from '@corral/resources'
import type { JsonRecord } from '../schema/json-value.js'
import type { PatchField, PatchSchema } from './patch-schema.js'
import { strategicMerge } from './strategic-merge.js'

const STRATEGIES = ['merge', 'replace', 'retainKeys'] as const

const caches = new WeakMap<FieldTable, Map<string, PatchSchema>>()

/** Strategic merge by the rules of a built-in type, `io.k8s.api.core.v1.Pod` for example. */
export function strategicMergePatch(target: unknown, patch: unknown, typeName: string, table: FieldTable): JsonRecord {
  return strategicMerge(target, patch, tablePatchSchema(table, typeName))
}

/** The merge rules of a type in the table; undefined for a name it does not have. */
export function tablePatchSchema(table: FieldTable, typeName: string): PatchSchema | undefined {
  let cache = caches.get(table)
  if (!cache) {
    cache = new Map()
    caches.set(table, cache)
  }
  const known = cache.get(typeName)
  if (known) return known
  const info = table.find(typeName)
  if (!info) return undefined
  const fields = new Map<string, PatchField>()
  const schema: PatchSchema = {
    field(name) {
      const found = fields.get(name)
      if (found) return found
      const field = info.field(name)
      if (!field) return undefined
      const rules = patchField(table, field)
      fields.set(name, rules)
      return rules
    },
  }
  cache.set(typeName, schema)
  return schema
}

function patchField(table: FieldTable, field: FieldInfo): PatchField {
  const child = childSchema(table, field.type)
  return {
    strategies: STRATEGIES.filter((each) => field.patchStrategy?.includes(each)),
    ...(field.patchMergeKey !== undefined && { mergeKey: field.patchMergeKey }),
    ...(child && { child }),
  }
}

function childSchema(table: FieldTable, type: FieldType): PatchSchema | undefined {
  switch (type.kind) {
    case 'ref':
      return tablePatchSchema(table, type.ref)
    case 'array':
      return childSchema(table, type.items)
    case 'map': {
      const child = childSchema(table, type.values)
      return child && { field: () => ({ strategies: [], child }) }
    }
    case 'scalar':
      return undefined
  }
}
