import type { ApiResponse } from '@corral/ports'
import type { KubeObject } from '@corral/resources'
import { prepareWrite } from '../crd/prepare-definition.js'
import {
  badRequest,
  conflict,
  invalid,
  invalidPatch,
  invalidValue,
  methodNotAllowed,
  notFound,
} from '../errors/api-error.js'
import { copyJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { presentObject, wantedForm } from '../read/presentation.js'
import { viewOf } from '../read/view.js'
import type { KindDefinition, ScalePaths } from '../registry/kind-definition.js'
import { fieldReader } from '../registry/selectable-fields.js'
import { readObject } from '../request/body.js'
import { objectResponse } from '../request/responses.js'
import { type ResourceRequest, writeRequest } from '../verbs/resource-request.js'
import { checkNamed, type Identified } from '../write/identity.js'
import { readPatchBody } from '../write/patch-body.js'
import { updateObject } from '../write/update-object.js'

/** GET, PUT and PATCH on scale: only the replica count can change, under the version of the object itself. */
export async function scaleVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace = '', name = '' } = resource
  const paths = kind.scale
  if (!paths) throw methodNotAllowed()
  const stored = context.store.collection(kind.collection).findHead(namespace, name)
  if (!stored) throw notFound(kind, name)
  if (request.method === 'GET') {
    const form = wantedForm(request)
    const scale = toScale(viewOf(kind, stored), paths)
    if (form.type === 'plain') return objectResponse(200, scale)
    return objectResponse(200, presentObject(scaleKindOf(kind), scale as KubeObject, form, context.clock.now()))
  }
  if (request.method !== 'PUT' && request.method !== 'PATCH') throw methodNotAllowed()

  const write = writeRequest(resource, 'UpdateOptions')
  await prepareWrite(kind)
  const wanted = await readScale(resource, toScale(viewOf(kind, stored), paths))
  const pending = updateObject(context, kind, { namespace, name, subresource: 'scale' }, write, (current) => {
    const replicas = checkScale(kind, name, wanted, current)
    const next = copyJson(current) as Identified
    setPath(next, paths.specReplicas, replicas)
    return next
  })
  await pending.committed
  return objectResponse(200, toScale(viewOf(kind, pending.object), paths))
}

const scaleKindOf = (kind: KindDefinition): KindDefinition => ({
  ...kind,
  isCustom: false,
  group: 'autoscaling',
  apiVersion: 'autoscaling/v1',
  kind: 'Scale',
})

async function readScale(resource: ResourceRequest, current: JsonObject): Promise<JsonObject> {
  const { request, kind, name = '' } = resource
  if (request.method === 'PUT') {
    const sent = await readObject(request)
    if (!isScale(sent))
      throw badRequest(`${String(sent.kind)} in version ${String(sent.apiVersion)} cannot be handled as a Scale`)
    checkNamed(sent, name)
    return sent
  }
  const patch = await readPatchBody(request, scaleKindOf(kind), 'scale')
  const patched = patch.type === 'apply' ? { ...current, ...patch.body } : patch.apply(current)
  if (typeof replicasOf(patched) === 'number') return patched
  throw invalidPatch('spec.replicas must be a number')
}

const isScale = ({ kind, apiVersion }: JsonObject): boolean =>
  (!kind || kind === 'Scale') && (!apiVersion || String(apiVersion).startsWith('autoscaling/'))

const replicasOf = ({ spec }: JsonObject): unknown => (isJsonObject(spec) ? (spec.replicas ?? 0) : 0)

function checkScale(kind: KindDefinition, name: string, wanted: JsonObject, current: JsonObject): number {
  const metadata = isJsonObject(wanted.metadata) ? wanted.metadata : {}
  if (metadata.name && metadata.name !== name)
    throw badRequest(`the name of the object (${String(metadata.name)}) does not match the name on the URL (${name})`)
  const version = (current.metadata as { resourceVersion?: string }).resourceVersion
  if (metadata.resourceVersion && metadata.resourceVersion !== version) throw conflict(kind, name)
  const replicas = replicasOf(wanted)
  if (typeof replicas !== 'number' || !Number.isInteger(replicas)) throw badRequest('spec.replicas must be an integer')
  if (replicas < 0) {
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, name, [
      invalidValue('spec.replicas', replicas, 'must be greater than or equal to 0'),
    ])
  }
  return replicas
}

function toScale(object: KubeObject, paths: ScalePaths): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata ?? {}
  const replicas = Number(fieldReader(paths.specReplicas)(object) || 0)
  const selector = paths.selector ? fieldReader(paths.selector)(object) : labelsSelected(object)
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    // None is the zero value, which Kubernetes leaves out.
    spec: replicas === 0 ? {} : { replicas },
    status: {
      replicas: Number(fieldReader(paths.statusReplicas)(object) || 0),
      ...(selector ? { selector } : {}),
    },
  }
}

/** The selector of a workload as text, the form in which scale shows it. */
function labelsSelected(object: KubeObject): string {
  const { selector } = (object as { spec?: { selector?: { matchLabels?: Record<string, string> } } }).spec ?? {}
  return Object.entries(selector?.matchLabels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',')
}

function setPath(object: JsonObject, path: string, value: unknown): void {
  const keys = path.split('.')
  const last = keys.pop()!
  let target = object
  for (const key of keys) {
    const next = isJsonObject(target[key]) ? target[key] : {}
    target[key] = next
    target = next
  }
  target[last] = value
}
