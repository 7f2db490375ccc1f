import type { ApiResponse } from '@corral/resources'
import { crdKind } from '../crd/crd-kind.js'
import { prepareWrite } from '../crd/prepare-definition.js'
import { badRequest, invalid, methodNotAllowed, required } from '../errors/api-error.js'
import { viewOf } from '../read/view.js'
import { objectResponse } from '../request/responses.js'
import type { JsonObject } from '../store/plain-json.js'
import { applyObject } from '../write/apply-object.js'
import { identify } from '../write/identity.js'
import { readPatchBody } from '../write/patch-body.js'
import { updateObject } from '../write/update-object.js'
import { type ResourceRequest, writeRequest } from './resource-request.js'

/** PATCH of any of the four types on an object or its status. */
export async function patchVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace = '', name = '', subresource } = resource
  if (!kind.verbs.includes('patch')) throw methodNotAllowed()
  const write = writeRequest(resource, 'PatchOptions')
  const patch = await readPatchBody(request, kind, subresource)
  const target = { namespace, name, subresource }
  if (patch.type === 'apply') {
    if (!request.query.get('fieldManager')) {
      throw invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
        required('fieldManager', 'is required for apply patch'),
      ])
    }
    const body = identify(kind, patch.body, namespace, name)
    await prepareWrite(kind, body)
    const applied = applyObject(context, kind, target, write, body)
    await applied.committed
    return objectResponse(applied.isNew ? 201 : 200, viewOf(kind, applied.object), write.warnings)
  }
  if (request.query.has('force')) {
    throw invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      { reason: 'FieldValueForbidden', field: 'force', message: 'Forbidden: may not be specified for non-apply patch' },
    ])
  }
  const live = context.store.collection(kind.collection).findHead(namespace, name)
  // A definition's patched schemas decide what must be loaded, so a definition is patched twice.
  await prepareWrite(kind, live && kind.collection === crdKind.collection ? patch.apply(live as JsonObject) : undefined)
  const pending = updateObject(context, kind, target, write, (current) => {
    const next = patch.apply(current)
    if (next.apiVersion !== kind.apiVersion || next.kind !== kind.kind) {
      throw badRequest('the patch may not change apiVersion or kind')
    }
    return identify(kind, next, namespace, name)
  })
  await pending.committed
  return objectResponse(200, viewOf(kind, pending.object), write.warnings)
}
