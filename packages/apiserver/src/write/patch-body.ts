import type { ApiRequest } from '@corral/ports'
import { badRequest, unsupportedMediaType } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { jsonPatch, mergePatch, unknownMembers } from '../patch/index.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { mediaType, readPatch } from '../request/body.js'
import { ownCopy } from './own-copy.js'
import { strategicPatch } from './strategic-patch.js'

const TYPES = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
} as const

export type PatchType = (typeof TYPES)[keyof typeof TYPES]

/** A patch that can be applied to any state of the object. Application throws when it does not fit. */
export type Patch =
  | { readonly type: 'apply'; readonly body: JsonObject }
  | {
      readonly type: Exclude<PatchType, 'apply'>
      /** Members of a JSON patch's operations that mean nothing. */
      readonly unknown?: readonly string[]
      apply(current: JsonObject): JsonObject
    }

/** Reads the patch of a request. Strategic merge needs Go types, which custom kinds do not have: 415 for those. */
export async function readPatchBody(
  request: ApiRequest,
  kind: KindDefinition,
  subresource: string,
  duplicates?: string[],
): Promise<Patch> {
  const type = TYPES[mediaType(request) as keyof typeof TYPES]
  if (!type || (type === 'strategic' && kind.isCustom)) {
    throw unsupportedMediaType(Object.keys(TYPES).filter((name) => !kind.isCustom || !name.includes('strategic')))
  }
  const body = await readPatch(request, type === 'apply', duplicates)
  const object = (value: unknown): JsonObject => {
    if (!isJsonObject(value)) throw badRequest('the patch does not leave an object')
    return ownCopy(kind, subresource, value)
  }
  if (type === 'json') {
    if (!Array.isArray(body)) throw badRequest('error decoding patch: a JSON patch is a list of operations')
    return { type, unknown: unknownMembers(body), apply: (current) => object(jsonPatch(current, body)) }
  }
  if (!isJsonObject(body)) throw badRequest('error decoding patch: the patch must be an object')
  if (type === 'apply') return { type, body }
  if (type === 'merge') return { type, apply: (current) => object(mergePatch(current, body)) }
  return { type, apply: (current) => object(strategicPatch(kind, current, body)) }
}
