import type { ApiResponse } from '@corral/ports'
import { prepareWrite } from '../crd/prepare-definition.js'
import { methodNotAllowed } from '../errors/api-error.js'
import { presentWritten, wantedForm } from '../read/presentation.js'
import { readObject } from '../request/body.js'
import { objectResponse } from '../request/responses.js'
import { createObject } from '../write/create-object.js'
import { identify } from '../write/identity.js'
import { type ResourceRequest, warned, writeRequest } from './resource-request.js'

/** POST on a collection. Reviews are answered, everything else is stored. */
export async function createVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace } = resource
  if (!kind.verbs.includes('create')) throw methodNotAllowed()
  const write = writeRequest(resource, 'CreateOptions')
  const form = wantedForm(request)
  const body = await readObject(request, write.duplicates)
  if (kind.review) return reviewResponse(resource, body)
  if (kind.namespaced && namespace === undefined) throw methodNotAllowed()
  try {
    const object = identify(kind, body, namespace, undefined)
    await prepareWrite(kind, object)
    const pending = createObject(context, kind, object, write)
    await pending.committed
    return objectResponse(201, presentWritten(kind, pending.object, form, context.clock.now()), write.warnings)
  } catch (error) {
    throw warned(error, write)
  }
}

async function reviewResponse(resource: ResourceRequest, body: Record<string, unknown>): Promise<ApiResponse> {
  const { context, kind, namespace, user } = resource
  body.apiVersion ??= kind.apiVersion
  body.kind ??= kind.kind
  body.metadata ??= {}
  const answer = await kind.review!(body, {
    user,
    namespace: namespace ?? '',
    verifyToken: (token) => context.tokens.verify(token),
  })
  return objectResponse(201, answer)
}
