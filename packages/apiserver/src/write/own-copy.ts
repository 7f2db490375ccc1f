import { copyJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'

/**
 * A patched or applied object that the write may change. It goes on sharing unchanged parts with the frozen state it
 * came from: comparing, validating and freezing skip them. Hooks of a kind reach deeper than the write
 * itself, so where they will run everything is copied.
 */
export function ownCopy(kind: KindDefinition, subresource: string, object: JsonObject): JsonObject {
  if (subresource === '' && (kind.defaults || kind.prepareUpdate)) return copyJson(object)
  const copy = { ...object }
  if (isJsonObject(copy.metadata)) copy.metadata = { ...copy.metadata }
  return copy
}
