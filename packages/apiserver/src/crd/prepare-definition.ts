import type { KindDefinition } from '../registry/kind-definition.js'
import { type JsonSchema, prepareSchema } from '../schema/index.js'
import { isJsonObject, type JsonObject } from '../store/plain-json.js'
import { crdKind } from './crd-kind.js'

/** Loads what the schemas of a definition need (pattern and rule engines), so that all else can happen in one turn. */
export async function prepareDefinition(kind: KindDefinition, object: JsonObject): Promise<void> {
  if (kind.collection !== crdKind.collection) return
  const versions = isJsonObject(object.spec) && Array.isArray(object.spec.versions) ? object.spec.versions : []
  for (const version of versions) {
    const schema = isJsonObject(version) && isJsonObject(version.schema) ? version.schema.openAPIV3Schema : undefined
    if (isJsonObject(schema)) await prepareSchema(schema as JsonSchema)
  }
}
