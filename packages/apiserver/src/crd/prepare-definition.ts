import { prepareCel } from '../cel/index.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { type JsonSchema, prepareSchema, schemaPath } from '../schema/index.js'

/** Loads the engines that the patterns and rules of a schema need; nothing where it has none. */
export async function prepareEngines(schema: JsonSchema): Promise<void> {
  await prepareSchema(schema)
  await prepareCel(schema)
}

/**
 * Makes sure everything a write of this object needs is loaded, so that all else can happen in one turn: the engines of
 * the kind's own schema, and for a definition those of the schemas it brings.
 */
export async function prepareWrite(kind: KindDefinition, object?: JsonObject): Promise<void> {
  const preparing = kind.schema?.prepare()
  if (preparing) await preparing
  if (!object || kind.collection !== 'customresourcedefinitions.apiextensions.k8s.io') return
  for (const { schema } of versionSchemas(object)) await prepareEngines(schema)
}

/** The schemas of a definition with their paths. */
export function versionSchemas(crd: JsonObject): { schema: JsonSchema; path: string }[] {
  const versions = isJsonObject(crd.spec) && Array.isArray(crd.spec.versions) ? crd.spec.versions : []
  return versions.flatMap((version: unknown, index) => {
    const schema = isJsonObject(version) && isJsonObject(version.schema) ? version.schema.openAPIV3Schema : undefined
    if (!isJsonObject(schema)) return []
    return [{ schema: schema as JsonSchema, path: schemaPath(index, versions.length === 1) }]
  })
}
