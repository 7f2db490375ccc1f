import type { ApiResponse } from '@corral/ports'
import { crdKind } from '../crd/crd-kind.js'
import { prepareWrite } from '../crd/prepare-definition.js'
import {
  badRequest,
  invalid,
  invalidPatch,
  methodNotAllowed,
  required,
  UndecodableError,
  undecodable,
} from '../errors/api-error.js'
import type { JsonObject } from '../objects/plain-json.js'
import { presentWritten, wantedForm } from '../read/presentation.js'
import { objectResponse } from '../request/responses.js'
import { applyObject } from '../write/apply-object.js'
import type { WriteRequest } from '../write/create-object.js'
import { checkNamed, type Identified, identify } from '../write/identity.js'
import { readPatchBody } from '../write/patch-body.js'
import { updateObject } from '../write/update-object.js'
import { type ResourceRequest, writeRequest } from './resource-request.js'

/** PATCH of any of the four types on an object or its status. */
export async function patchVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace = '', name = '', subresource } = resource
  if (!kind.verbs.includes('patch')) throw methodNotAllowed()
  const write = writeRequest(resource, 'PatchOptions')
  const form = wantedForm(request)
  const patch = await readPatchBody(request, kind, subresource, write.duplicates)
  const target = { namespace, name, subresource }
  if (patch.type === 'apply') {
    if (!request.query.get('fieldManager')) {
      throw invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
        required('fieldManager', 'is required for apply patch'),
      ])
    }
    for (const field of ['apiVersion', 'kind'])
      if (!patch.body[field]) throw badRequest(`an applied configuration must say its ${field}`)
    const body = identify(kind, patch.body, namespace, name)
    await prepareWrite(kind, body)
    const applied = applyObject(context, kind, target, write, body)
    await applied.committed
    return objectResponse(
      applied.isNew ? 201 : 200,
      presentWritten(kind, applied.object, form, context.clock.now()),
      write.warnings,
    )
  }
  if (request.query.has('force')) {
    throw invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      { reason: 'FieldValueForbidden', field: 'force', message: 'Forbidden: may not be specified for non-apply patch' },
    ])
  }
  tellUnknown(patch.unknown ?? [], write)
  const live = context.store.collection(kind.collection).findHead(namespace, name)
  // A definition's patched schemas decide what must be loaded, so a definition is patched twice.
  await prepareWrite(kind, live && kind.collection === crdKind.collection ? patch.apply(live as JsonObject) : undefined)
  const pending = readable(() =>
    updateObject(context, kind, target, write, (current) => identifyPatched(resource, patch.apply(current))),
  )
  await pending.committed
  return objectResponse(200, presentWritten(kind, pending.object, form, context.clock.now()), write.warnings)
}

function identifyPatched({ kind, namespace = '', name = '' }: ResourceRequest, next: JsonObject): Identified {
  checkNamed(next, name)
  if (next.apiVersion === undefined || next.kind === undefined)
    throw undecodable('the patch removes apiVersion or kind')
  return identify(kind, next, namespace, name)
}

function tellUnknown(members: readonly string[], { fieldValidation, warnings }: WriteRequest): void {
  if (members.length === 0 || fieldValidation === 'Ignore') return
  const texts = members.map((member) => `json patch unknown field ${JSON.stringify(member)}`)
  if (fieldValidation === 'Strict') throw invalidPatch(`strict decoding error: ${texts.join(', ')}`)
  warnings.push(...texts)
}

/** The same trouble with reading an object has another status where the object is what a patch has left. */
function readable<T>(patch: () => T): T {
  try {
    return patch()
  } catch (error) {
    throw error instanceof UndecodableError ? invalidPatch(error.message) : error
  }
}
