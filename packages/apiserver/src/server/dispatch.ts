import type { ApiRequest, ApiResponse, ApiUser } from '@corral/ports'
import { mayDo } from '../auth/access.js'
import type { ServerContext } from '../context/server-context.js'
import { apiError, forbidden, methodNotAllowed, unauthorized, unknownPath } from '../errors/api-error.js'
import { isApiError } from '../request/responses.js'
import { parseResourcePath, type ResourceRoute } from '../request/route.js'
import { subresourceVerb } from '../subresources/subresource-verb.js'
import { createVerb } from '../verbs/create.js'
import { deleteCollectionVerb, deleteVerb } from '../verbs/delete.js'
import { patchVerb } from '../verbs/patch.js'
import { getVerb, listVerb } from '../verbs/read.js'
import type { ResourceRequest } from '../verbs/resource-request.js'
import { updateVerb } from '../verbs/update.js'
import { withConversions } from '../verbs/with-conversions.js'

/** Finds the kind a path names and checks that its scope fits; 404 otherwise. */
export function resolveResource(context: ServerContext, request: ApiRequest): ResourceRequest | undefined {
  const route = parseResourcePath(request.path)
  if (!route) return undefined
  const kind = context.registry.find(route.apiVersion, route.plural)
  if (!kind || !scopeFits(route, kind.namespaced)) throw unknownPath()
  if (!request.user) throw unauthorized()
  refuseImpersonation(request, request.user)
  const resource: ResourceRequest = {
    request,
    context,
    kind,
    namespace: kind.namespaced ? route.namespace : undefined,
    name: route.name,
    subresource: route.subresource ?? '',
    user: request.user,
  }
  checkAccess(resource)
  return resource
}

/** There is one user and no impersonation: a request that asks for it is refused instead of run as the caller. */
function refuseImpersonation({ headers }: ApiRequest, user: ApiUser): void {
  const name = headers['impersonate-user'] ?? headers['impersonate-group'] ?? headers['impersonate-uid']
  if (name === undefined) return
  const why = `User ${JSON.stringify(user.name)} cannot impersonate resource "users" in API group "" at the cluster scope`
  throw forbidden({ group: '', plural: 'users', kind: 'User' }, String(name), why)
}

function scopeFits(route: ResourceRoute, isNamespaced: boolean): boolean {
  if (!isNamespaced) return route.namespace === undefined
  return route.namespace !== undefined || route.name === undefined
}

function checkAccess({ request, kind, name, user }: ResourceRequest): void {
  const verb = request.method === 'POST' && name === undefined ? 'create' : request.method.toLowerCase()
  if (mayDo(user, { verb, group: kind.group, resource: kind.plural })) return
  const what = kind.group ? `${kind.plural}.${kind.group}` : kind.plural
  throw apiError(
    403,
    'Forbidden',
    `${what} ${JSON.stringify(name ?? '')} is forbidden: User ${JSON.stringify(user.name)} cannot ${verb} resource ${JSON.stringify(kind.plural)} in API group ${JSON.stringify(kind.group)}`,
    { ...(name ? { name } : {}), ...(kind.group ? { group: kind.group } : {}), kind: kind.plural },
  )
}

/** Carries out a request on a resource. A deprecated version says so whatever becomes of the request. */
export function dispatchResource(resource: ResourceRequest): Promise<ApiResponse> | ApiResponse {
  const { warning, warnsOnRead } = resource.kind
  return warnsOnRead && warning ? warningAnyway(resource, warning) : carryOut(resource)
}

async function warningAnyway(resource: ResourceRequest, warning: string): Promise<ApiResponse> {
  try {
    return await carryOut(resource)
  } catch (error) {
    if (isApiError(error) && !error.warnings?.includes(warning)) error.warnings = [warning, ...(error.warnings ?? [])]
    throw error
  }
}

function carryOut(resource: ResourceRequest): Promise<ApiResponse> | ApiResponse {
  return resource.kind.loadConversions ? withConversions(resource, byMethod) : byMethod(resource)
}

function byMethod(resource: ResourceRequest): Promise<ApiResponse> | ApiResponse {
  const { request, name, subresource } = resource
  if (subresource !== '') return subresourceVerb(resource)
  if (name === undefined) {
    switch (request.method) {
      case 'GET':
        return listVerb(resource)
      case 'POST':
        return createVerb(resource)
      case 'DELETE':
        return deleteCollectionVerb(resource)
      default:
        throw methodNotAllowed()
    }
  }
  // What is answered and never stored has no name to be found under.
  if (resource.kind.review) throw unknownPath()
  switch (request.method) {
    case 'GET':
      return getVerb(resource)
    case 'PUT':
      return updateVerb(resource)
    case 'PATCH':
      return patchVerb(resource)
    case 'DELETE':
      return deleteVerb(resource)
    default:
      throw methodNotAllowed()
  }
}
