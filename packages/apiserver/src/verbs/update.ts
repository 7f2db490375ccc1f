import type { ApiResponse } from '@corral/ports'
import { prepareWrite } from '../crd/prepare-definition.js'
import { conflict, methodNotAllowed } from '../errors/api-error.js'
import { presentWritten, wantedForm } from '../read/presentation.js'
import { readObject } from '../request/body.js'
import { objectResponse } from '../request/responses.js'
import { createObject } from '../write/create-object.js'
import { checkNamed, identify } from '../write/identity.js'
import { updateObject } from '../write/update-object.js'
import { type ResourceRequest, writeRequest } from './resource-request.js'

/** PUT on an object or its status. A few kinds are created by it when they do not exist. */
export async function updateVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace = '', name = '', subresource } = resource
  if (!kind.verbs.includes('update')) throw methodNotAllowed()
  const write = writeRequest(resource, 'UpdateOptions')
  const form = wantedForm(request)
  const sent = await readObject(request, write.duplicates)
  checkNamed(sent, name)
  const body = identify(kind, sent, namespace, name)
  await prepareWrite(kind, body)
  const exists = context.store.collection(kind.collection).findHead(namespace, name) !== undefined
  if (!exists && kind.createsOnUpdate && subresource === '') {
    const { uid } = body.metadata
    if (uid) throw conflict(kind, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: `)
    delete body.metadata.resourceVersion
    const pending = createObject(context, kind, body, write)
    await pending.committed
    return objectResponse(201, presentWritten(kind, pending.object, form, context.clock.now()), write.warnings)
  }
  const target = { namespace, name, subresource }
  const pending = updateObject(context, kind, target, write, () => body, { isReplace: true })
  await pending.committed
  return objectResponse(200, presentWritten(kind, pending.object, form, context.clock.now()), write.warnings)
}
