import { fieldTable, type KubeObject } from '@corral/resources'
import { anyType, crdType, type TypeSchema, tableType, trackUpdate } from '../managed-fields/index.js'
import type { JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import type { JsonSchema } from '../schema/index.js'

/** Who writes, for the object's managedFields. */
export interface Writer {
  readonly manager: string
  readonly subresource: string
  readonly now: Date
}

/** Records in `next` which fields this write changed. Changes `next.metadata` only. */
export function recordOwnership(
  kind: KindDefinition,
  old: JsonObject | undefined,
  next: JsonObject,
  writer: Writer,
): void {
  const entries = trackUpdate({
    before: old as KubeObject | undefined,
    after: next as KubeObject,
    manager: writer.manager,
    type: ownershipType(kind),
    now: writer.now,
    subresource: writer.subresource,
    ignores: fieldsIgnoredBy(kind, writer.subresource),
  })
  const metadata = next.metadata as NonNullable<KubeObject['metadata']>
  if (entries) metadata.managedFields = entries
  else delete metadata.managedFields
}

/** Top-level fields an endpoint cannot write, so that it cannot own them either. */
export function fieldsIgnoredBy(kind: KindDefinition, subresource: string): (field: string) => boolean {
  if (subresource === 'status') return kind.isCustom ? (field) => field !== 'status' : (field) => field === 'spec'
  return kind.hasStatus ? (field) => field === 'status' : () => false
}

const types = new WeakMap<KindDefinition, TypeSchema>()

/** How the kind's fields are owned: as a whole, item by item, or key by key. */
export function ownershipType(kind: KindDefinition): TypeSchema {
  let type = types.get(kind)
  if (!type) {
    type = makeType(kind)
    types.set(kind, type)
  }
  return type
}

function makeType(kind: KindDefinition): TypeSchema {
  if (kind.schema) return crdType(kind.schema.raw as JsonSchema, fieldTable)
  const info = fieldTable.forKind(kind.apiVersion, kind.kind)
  return info ? tableType(fieldTable, info.name) : anyType
}
