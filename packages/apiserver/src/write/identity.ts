import type { ObjectMeta } from '@corral/resources'
import { badRequest, invalid, invalidValue, undecodable } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { canonicalJson } from '../schema/json-value.js'

/** A body whose kind, namespace and name agree with the URL. */
export interface Identified extends JsonObject {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
}

/** Makes the body agree with the URL or refuses it with 400. Missing parts are filled in where Kubernetes fills them in. */
export function identify(
  kind: KindDefinition,
  body: JsonObject,
  namespace: string | undefined,
  name: string | undefined,
): Identified {
  checkGroupVersionKind(kind, body)
  if (body.metadata === undefined || body.metadata === null) body.metadata = {}
  if (!isJsonObject(body.metadata)) throw undecodable('metadata must be an object')
  const metadata = body.metadata as ObjectMeta
  checkStrings(metadata)
  if (kind.namespaced) {
    if (!metadata.namespace) metadata.namespace = namespace ?? ''
    else if (metadata.namespace !== namespace) {
      throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`)
    }
  } else if (metadata.namespace) {
    delete metadata.namespace
  }
  if (name !== undefined) {
    if (!metadata.name) metadata.name = name
    else if (metadata.name !== name) {
      throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
    }
  }
  return body as Identified
}

/** Makes sure that a body which replaces an object says which; 400 otherwise. Metadata of no shape is `identify`'s to refuse. */
export function checkNamed({ metadata }: JsonObject, name: string): void {
  if (isJsonObject(metadata) ? metadata.name : metadata) return
  throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`)
}

/** No object keeps an empty map or list in its metadata: the last label takes `labels` with it. */
export function dropEmptyMetadata(metadata: ObjectMeta): void {
  for (const field of ['labels', 'annotations'] as const) {
    const value = metadata[field]
    if (value && isEmpty(value)) delete metadata[field]
  }
  for (const field of ['finalizers', 'ownerReferences'] as const)
    if (metadata[field]?.length === 0) delete metadata[field]
}

/** An owner that is named twice counts once, and the writer is told. */
export function dropRepeatedOwners(metadata: ObjectMeta, warnings: string[]): void {
  const owners = metadata.ownerReferences ?? []
  if (owners.length < 2) return
  const seen = new Set<string>()
  const isRepeated = owners.map((owner) => seen.size === seen.add(canonicalJson(owner)).size)
  if (!isRepeated.includes(true)) return
  metadata.ownerReferences = owners.filter((_, index) => !isRepeated[index])
  const uids = owners.filter((_, index) => isRepeated[index]).map(({ uid }) => uid)
  warnings.push(
    `.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${uids.join(', ')}`,
  )
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false
  return true
}

function checkGroupVersionKind(kind: KindDefinition, body: JsonObject): void {
  if (kind.isCustom && (!body.kind || !body.apiVersion)) {
    throw undecodable("Object 'Kind' is missing in the body: custom resources must name apiVersion and kind")
  }
  body.apiVersion = body.apiVersion || kind.apiVersion
  body.kind = body.kind || kind.kind
  if (body.apiVersion !== kind.apiVersion) {
    throw undecodable(
      `the API version in the data (${String(body.apiVersion)}) does not match the expected API version (${kind.apiVersion})`,
    )
  }
  if (body.kind !== kind.kind) {
    if (kind.isCustom) throw foreignKind(kind, body)
    throw undecodable(`the kind in the data (${String(body.kind)}) does not match the expected kind (${kind.kind})`)
  }
}

/** A custom object of another kind can be read, so what is wrong is its field. */
function foreignKind({ group, kind }: KindDefinition, body: JsonObject): Error {
  const name = isJsonObject(body.metadata) ? String(body.metadata.name ?? '') : ''
  return invalid({ group, kind: String(body.kind) }, name, [invalidValue('kind', body.kind, `must be ${kind}`)])
}

function checkStrings(metadata: ObjectMeta): void {
  for (const field of ['name', 'generateName', 'namespace', 'uid', 'resourceVersion'] as const) {
    const value: unknown = metadata[field]
    if (value === null) delete metadata[field]
    else if (value !== undefined && typeof value !== 'string') throw undecodable(`metadata.${field} must be a string`)
  }
  for (const field of ['labels', 'annotations'] as const) {
    const value: unknown = metadata[field]
    if (value === null) delete metadata[field]
    else if (value !== undefined && !isJsonObject(value)) throw undecodable(`metadata.${field} must be an object`)
    else if (value !== undefined) {
      for (const [key, item] of Object.entries(value)) {
        if (typeof item !== 'string') throw undecodable(`metadata.${field}.${key}: the value must be a string`)
      }
    }
  }
  for (const field of ['finalizers', 'ownerReferences', 'managedFields'] as const) {
    const value: unknown = metadata[field]
    if (value === null) delete metadata[field]
    else if (value !== undefined && !Array.isArray(value)) throw undecodable(`metadata.${field} must be a list`)
  }
}
