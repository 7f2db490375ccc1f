import type { ApiResponse } from '@corral/ports'
import { methodNotAllowed, notFound } from '../errors/api-error.js'
import { listObjects, parseSelection } from '../read/list.js'
import { presentEvents, presentList, presentObject, wantedForm } from '../read/presentation.js'
import { viewOf } from '../read/view.js'
import { openWatch } from '../read/watch.js'
import { queryFlag, queryInteger } from '../request/query.js'
import { jsonHeaders, objectResponse } from '../request/responses.js'
import { listResponse } from './list-response.js'
import type { ResourceRequest } from './resource-request.js'

/** GET on an object, which is not watched: the flag counts on collections only. */
export function getVerb(resource: ResourceRequest): ApiResponse {
  const { request, context, kind, namespace = '', name = '' } = resource
  if (!kind.verbs.includes('get')) throw methodNotAllowed()
  const form = wantedForm(request)
  if (request.query.size > 0) queryInteger(request.query, 'resourceVersion') // any will do, but it has to be one
  const stored = context.store.collection(kind.collection).find(namespace, name)
  if (!stored) throw notFound(kind, name)
  const object = viewOf(kind, stored)
  const warnings = readWarnings(resource)
  if (form.type === 'plain') return objectResponse(200, object, warnings)
  return objectResponse(200, presentObject(kind, object, form, context.clock.now()), warnings)
}

/** GET on a collection: a list or a watch. */
export async function listVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace } = resource
  const form = wantedForm(request, true)
  if (queryFlag(request.query, 'watch')) return watchVerb(resource)
  if (!kind.verbs.includes('list')) throw methodNotAllowed()
  const selection = parseSelection(kind, namespace, request.query)
  queryInteger(request.query, 'timeoutSeconds') // counts for watches only, but has to be a number
  const listing = await listObjects(context, kind, selection, request.query, request.signal)
  const warnings = readWarnings(resource)
  if (form.type !== 'plain') return objectResponse(200, presentList(kind, listing, form, context.clock.now()), warnings)
  return listResponse(kind, listing, warnings)
}

/** A watch of a collection; one object is watched by a field selector on its name. */
function watchVerb(resource: ResourceRequest): ApiResponse {
  const { request, context, kind, namespace } = resource
  if (!kind.verbs.includes('watch')) throw methodNotAllowed()
  const { query } = request
  const selection = parseSelection(kind, kind.namespaced ? namespace : undefined, query)
  const form = wantedForm(request, true)
  const response = openWatch(context, kind, selection, query, presentEvents(kind, form, context.clock), request.signal)
  const warnings = readWarnings(resource)
  return warnings.length === 0 ? response : { ...response, headers: jsonHeaders(warnings) }
}

const readWarnings = ({ kind }: ResourceRequest): string[] => (kind.warnsOnRead && kind.warning ? [kind.warning] : [])
