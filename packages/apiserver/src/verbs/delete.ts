import type { ApiResponse } from '@corral/ports'
import type { KubeObject } from '@corral/resources'
import { methodNotAllowed } from '../errors/api-error.js'
import type { JsonObject } from '../objects/plain-json.js'
import { listObjects, parseSelection } from '../read/list.js'
import { viewOf } from '../read/view.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { hasBody, readObject } from '../request/body.js'
import { objectResponse, successStatus } from '../request/responses.js'
import { deleteObject, parseDeleteOptions } from '../write/delete-object.js'
import { listResponse } from './list-response.js'
import type { ResourceRequest } from './resource-request.js'

/** DELETE on an object. */
export async function deleteVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace = '', name = '' } = resource
  if (!kind.verbs.includes('delete')) throw methodNotAllowed()
  const options = parseDeleteOptions(request.query, await readOptions(resource))
  const outcome = deleteObject(context, kind, namespace, name, options)
  await outcome.committed
  const warnings = warningsOf(kind)
  if (!outcome.isRemoved || kind.answersDeleteWithObject) {
    const isLater = !outcome.isRemoved && options.orphanDependents === false
    return objectResponse(isLater ? 202 : 200, viewOf(kind, outcome.object), warnings)
  }
  const { group, plural } = kind
  const uid = outcome.object.metadata?.uid ?? ''
  return objectResponse(200, successStatus({ name, ...(group ? { group } : {}), kind: plural, uid }), warnings)
}

/** DELETE on a collection: everything selected, and the answer lists it. */
export async function deleteCollectionVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace } = resource
  const isAcrossNamespaces = kind.namespaced && namespace === undefined
  if (!kind.verbs.includes('deletecollection') || isAcrossNamespaces) throw methodNotAllowed()
  const options = parseDeleteOptions(request.query, await readOptions(resource))
  const selection = parseSelection(kind, namespace, request.query)
  const listing = await listObjects(context, kind, selection, new URLSearchParams(), request.signal)
  const outcomes = listing.items.flatMap((item) => {
    const live = context.store
      .collection(kind.collection)
      .findHead(item.metadata?.namespace ?? '', item.metadata?.name ?? '')
    return live ? [deleteObject(context, kind, item.metadata?.namespace ?? '', item.metadata?.name ?? '', options)] : []
  })
  await Promise.all(outcomes.map((outcome) => outcome.committed))
  const items: KubeObject[] = outcomes.map((outcome) => viewOf(kind, outcome.object))
  const answer = { metadata: { resourceVersion: String(context.store.head) }, items }
  return listResponse(kind, answer, warningsOf(kind))
}

const warningsOf = ({ warnsOnRead, warning }: KindDefinition): string[] => (warnsOnRead && warning ? [warning] : [])

async function readOptions({ request }: ResourceRequest): Promise<JsonObject | undefined> {
  return hasBody(request) ? readObject(request) : undefined
}
