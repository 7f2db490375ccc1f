import type { ApiResponse } from '@corral/ports'
import { methodNotAllowed, unknownPath } from '../errors/api-error.js'
import { patchVerb } from '../verbs/patch.js'
import { getVerb } from '../verbs/read.js'
import type { ResourceRequest } from '../verbs/resource-request.js'
import { updateVerb } from '../verbs/update.js'
import { finalizeVerb } from './finalize.js'
import { bindingVerb, evictionVerb } from './pod-actions.js'
import { logVerb } from './pod-log.js'
import { upgradeRequired } from './pod-streams.js'
import { scaleVerb } from './scale.js'
import { tokenVerb } from './token.js'

/** Carries out a request on a sub-resource. */
export function subresourceVerb(resource: ResourceRequest): Promise<ApiResponse> | ApiResponse {
  const { kind, subresource, request } = resource
  if (!kind.subresources.some((row) => row.name === subresource)) throw unknownPath()
  switch (subresource) {
    case 'status':
      return statusVerb(resource)
    case 'scale':
      return scaleVerb(resource)
    case 'token':
      return tokenVerb(resource)
    case 'finalize':
      return finalizeVerb(resource)
    case 'eviction':
      return evictionVerb(resource)
    case 'binding':
      return bindingVerb(resource)
    case 'log':
      if (request.method !== 'GET') throw methodNotAllowed()
      return logVerb(resource)
    case 'exec':
    case 'attach':
    case 'portforward':
      return upgradeRequired(resource)
    default:
      throw unknownPath()
  }
}

function statusVerb(resource: ResourceRequest): Promise<ApiResponse> | ApiResponse {
  switch (resource.request.method) {
    case 'GET':
      return getVerb(resource)
    case 'PUT':
      return updateVerb(resource)
    case 'PATCH':
      return patchVerb(resource)
    default:
      throw methodNotAllowed()
  }
}
