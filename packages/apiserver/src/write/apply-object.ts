import { badRequest, notFound } from '../errors/api-error.js'
import { mergePatch } from '../patch/index.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import type { ServerContext } from '../server-context.js'
import type { PendingWrite } from '../store/object-store.js'
import { copyJson } from '../store/plain-json.js'
import { createObject, type WriteRequest } from './create-object.js'
import type { Identified } from './identity.js'
import { type UpdateTarget, updateObject } from './update-object.js'

export interface AppliedObject extends PendingWrite {
  readonly isNew: boolean
}

/** Server-side apply: creates the object or merges the body into it by schema. */
export function applyObject(
  context: ServerContext,
  kind: KindDefinition,
  target: UpdateTarget,
  request: WriteRequest & { force: boolean },
  body: Identified,
): AppliedObject {
  if (body.metadata.managedFields !== undefined) throw badRequest('metadata.managedFields must be nil')
  const live = context.store.collection(kind.collection).findHead(target.namespace, target.name)
  if (!live) {
    if (target.subresource !== '') throw notFound(kind, target.name)
    return { ...createObject(context, kind, body, request), isNew: true }
  }
  const change = (current: Record<string, unknown>): Identified => copyJson(mergePatch(current, body)) as Identified
  return { ...updateObject(context, kind, target, request, change), isNew: false }
}
