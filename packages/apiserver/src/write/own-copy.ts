import type { KindDefinition } from '../registry/kind-definition.js'
import { copyJson, isJsonObject, type JsonObject } from '../store/plain-json.js'

/**
 * A patched or applied object that the write may change. It goes on sharing unchanged parts with the frozen state it
 * came from: whoever compares, validates or freezes later passes over them. Hooks of a kind reach deeper than the write
 * itself, so where they will run everything is copied.
 */
export function ownCopy(kind: KindDefinition, subresource: string, object: JsonObject): JsonObject {
  if (subresource === '' && (kind.defaults || kind.prepareUpdate)) return copyJson(object)
  const copy = { ...object }
  if (isJsonObject(copy.metadata)) copy.metadata = { ...copy.metadata }
  return copy
}
