import type { ApiResponse } from '@corral/ports'
import type { ServerContext } from '../context/server-context.js'
import { methodNotAllowed } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { readObject } from '../request/body.js'
import { objectResponse } from '../request/responses.js'
import type { PendingWrite } from '../store/object-store.js'
import { type ResourceRequest, writeRequest } from '../verbs/resource-request.js'
import type { WriteRequest } from '../write/create-object.js'
import { checkNamed, type Identified, identify } from '../write/identity.js'
import { updateObject } from '../write/update-object.js'

/** PUT on a namespace's finalize: the only way to change `spec.finalizers`. */
export async function finalizeVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, name = '' } = resource
  if (request.method !== 'PUT') throw methodNotAllowed()
  const write = writeRequest(resource, 'UpdateOptions')
  const sent = await readObject(request)
  checkNamed(sent, name)
  const body = identify(kind, sent, undefined, name)
  const pending = finalizeNamespace(context, kind, name, write, () => body)
  await pending.committed
  return objectResponse(200, pending.object)
}

/** Replaces a namespace's `spec.finalizers`; once they are empty a deleted namespace is gone. */
export function finalizeNamespace(
  context: ServerContext,
  kind: KindDefinition,
  name: string,
  write: WriteRequest,
  change: (current: JsonObject) => JsonObject,
): PendingWrite {
  const target = { namespace: '', name, subresource: 'finalize' }
  return updateObject(context, kind, target, write, (current) => {
    const next = change(current)
    const finalizers = isJsonObject(next.spec) && Array.isArray(next.spec.finalizers) ? next.spec.finalizers : []
    const { finalizers: _old, ...spec } = isJsonObject(current.spec) ? current.spec : {}
    const metadata = { ...(current.metadata as Identified['metadata']) }
    return { ...(current as Identified), metadata, spec: finalizers.length > 0 ? { ...spec, finalizers } : spec }
  })
}
