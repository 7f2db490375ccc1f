import type { KubeObject } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import { apiError, badRequest, conflict, notFound } from '../errors/api-error.js'
import { applyPatch } from '../managed-fields/index.js'
import { copyJson, type JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import type { PendingWrite } from '../store/object-store.js'
import { createObject, type WriteRequest } from './create-object.js'
import { dropUnknownFields } from './field-checks.js'
import type { Identified } from './identity.js'
import { ownCopy } from './own-copy.js'
import { fieldsIgnoredBy, ownershipType } from './ownership.js'
import { type UpdateTarget, updateObject } from './update-object.js'

export interface AppliedObject extends PendingWrite {
  readonly isNew: boolean
}

/** Server-side apply: creates the object, or merges the body into it by schema and moves ownership. */
export function applyObject(
  context: ServerContext,
  kind: KindDefinition,
  target: UpdateTarget,
  request: WriteRequest & { force: boolean },
  body: Identified,
): AppliedObject {
  if (body.metadata.managedFields !== undefined) throw badRequest('metadata.managedFields must be nil')
  // Who applies a zero owns the field, though the object will not show it.
  const applied = dropUnknownFields(kind, body, request, true) as Identified
  const merge = (live: KubeObject | undefined): Identified => {
    const result = applyPatch({
      live,
      applied: applied as KubeObject,
      manager: request.manager,
      force: request.force,
      type: ownershipType(kind),
      now: context.clock.now(),
      ...(target.subresource === '' ? {} : { subresource: target.subresource }),
      ignores: fieldsIgnoredBy(kind, target.subresource),
    })
    if ('object' in result) {
      const object = result.object as JsonObject
      return (live ? ownCopy(kind, target.subresource, object) : copyJson(object)) as Identified
    }
    const { message, causes } = result.conflicts
    throw apiError(409, 'Conflict', message, { causes })
  }

  if (!context.store.collection(kind.collection).findHead(target.namespace, target.name)) {
    if (target.subresource !== '') throw notFound(kind, target.name)
    const { uid } = body.metadata
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`
    if (uid) throw conflict(kind, target.name, why)
    delete applied.metadata.resourceVersion
    return { ...createObject(context, kind, merge(undefined), request, { keepsManagedFields: true }), isNew: true }
  }
  const change = (current: Record<string, unknown>): Identified => merge(current as KubeObject)
  return { ...updateObject(context, kind, target, request, change, { keepsManagedFields: true }), isNew: false }
}
