import { fieldTable } from '@corral/resources'
import type { JsonObject } from '../objects/plain-json.js'
import { strategicMergePatch } from '../patch/index.js'
import type { KindDefinition } from '../registry/kind-definition.js'

/** Applies a strategic merge patch by the kind's type in the field table; as a plain merge where it has none. */
export function strategicPatch(kind: KindDefinition, current: JsonObject, patch: JsonObject): unknown {
  const type = fieldTable.forKind(kind.apiVersion, kind.kind)
  return strategicMergePatch(current, patch, type?.name ?? '', fieldTable)
}
