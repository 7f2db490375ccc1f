import type { ApiResponse } from '@corral/ports'
import { badRequest, conflict, methodNotAllowed, notFound } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import type { SchedulingPod } from '../registry/plan-binding.js'
import { hasBody, readObject } from '../request/body.js'
import { parseWriteOptions } from '../request/query.js'
import { objectResponse, successStatus } from '../request/responses.js'
import { bindPod } from '../schedule/bind-pod.js'
import type { ResourceRequest } from '../verbs/resource-request.js'
import { deleteObject, parseDeleteOptions } from '../write/delete-object.js'

/** POST on eviction: the pod is deleted the way its delete options say; there are no budgets to hold it back. */
export async function evictionVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace = '', name = '' } = resource
  if (request.method !== 'POST') throw methodNotAllowed()
  const body = hasBody(request) ? await readObject(request) : {}
  checkKind(body, 'Eviction')
  if (!isJsonObject(body.metadata) || body.metadata.name !== name)
    throw badRequest('name in URL does not match name in Eviction object')
  const options = parseDeleteOptions(request.query, isJsonObject(body.deleteOptions) ? body.deleteOptions : undefined)
  await deleteObject(context, kind, namespace, name, options).committed
  return objectResponse(201, successStatus(undefined, 201))
}

/** POST on binding: sets the node of a pod that has none. */
export async function bindingVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace = '', name = '' } = resource
  if (request.method !== 'POST') throw methodNotAllowed()
  const body = await readObject(request)
  checkKind(body, 'Binding')
  if (!isJsonObject(body.metadata) || body.metadata.name !== name) {
    throw badRequest('name in URL does not match name in Binding object')
  }
  const { name: node, kind: targetKind } = isJsonObject(body.target) ? body.target : {}
  if (targetKind && targetKind !== 'Node') throw badRequest('target.kind must be Node or empty')
  if (typeof node !== 'string' || node === '') throw badRequest('target.name must name a node')
  const pod = context.store.collection(kind.collection).findHead(namespace, name)
  if (!pod) throw notFound(kind, name)
  const { nodeName, schedulingGates = [] } = (pod as SchedulingPod).spec ?? {}
  const refused = (why: string): Error => conflict({ ...kind, plural: 'pods/binding' }, name, `pod ${name} ${why}`)
  if (nodeName) throw refused(`is already assigned to node "${nodeName}"`)
  if (schedulingGates.length > 0) throw refused('has non-empty .spec.schedulingGates')
  if (!parseWriteOptions(request.query, 'CreateOptions').dryRun) await bindPod(context, pod, node).committed
  return objectResponse(201, successStatus(undefined, 201))
}

function checkKind({ kind }: JsonObject, expected: string): void {
  if (kind !== undefined && kind !== expected)
    throw badRequest(`the kind in the data (${String(kind)}) does not match the expected kind (${expected})`)
}
