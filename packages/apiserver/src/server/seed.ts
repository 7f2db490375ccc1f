import { type CustomResourceDefinition, Namespaces, ServiceAccounts } from '@corral/resources'
import { systemUser } from '../auth/access.js'
import type { ServerContext } from '../context/server-context.js'
import { crdKind } from '../crd/crd-kind.js'
import { copyJson, equalJson, type JsonObject } from '../objects/plain-json.js'
import { createObject, type WriteRequest } from '../write/create-object.js'
import { type Identified, identify } from '../write/identity.js'
import { updateObject } from '../write/update-object.js'

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

export const systemWrite: WriteRequest = {
  user: systemUser,
  manager: 'corral-apiserver',
  dryRun: false,
  fieldValidation: 'Ignore',
  warnings: [],
}

/** Brings what every server has: four namespaces, a service account in each namespace, the given definitions. */
export async function seedObjects(context: ServerContext, crds: readonly CustomResourceDefinition[]): Promise<void> {
  const { store, registry } = context
  const namespaces = registry.find(Namespaces.apiVersion, Namespaces.plural)!
  for (const name of NAMESPACES) {
    if (store.collection('namespaces').findHead('', name)) continue
    createObject(context, namespaces, identify(namespaces, { metadata: { name } }, undefined, undefined), systemWrite)
  }
  for (const namespace of store.collection('namespaces').list())
    ensureServiceAccount(context, namespace.metadata?.name ?? '')
  store.listen((collection, event) => {
    if (collection === 'namespaces' && event.type === 'ADDED') ensureServiceAccount(context, event.name)
  })
  for (const crd of crds) await installDefinition(context, crd)
}

/** A namespace on its way out takes nothing new in. */
function ensureServiceAccount(context: ServerContext, namespace: string): void {
  const home = context.store.collection('namespaces').findHead('', namespace)
  if (!home || home.metadata?.deletionTimestamp) return
  const kind = context.registry.find(ServiceAccounts.apiVersion, ServiceAccounts.plural)!
  if (context.store.collection(kind.collection).findHead(namespace, 'default')) return
  const body = { metadata: { name: 'default', namespace } }
  createObject(context, kind, identify(kind, body, namespace, undefined), systemWrite)
}

/** Definitions the server brings along are generated and tested with it, so they are not validated once more. */
async function installDefinition(context: ServerContext, crd: CustomResourceDefinition): Promise<void> {
  const name = crd.metadata?.name ?? ''
  const body = identify(crdKind, copyJson(crd) as unknown as JsonObject, undefined, name)
  crdKind.defaults?.(body)
  const live = context.store.collection(crdKind.collection).findHead('', name)
  if (!live) return createObject(context, crdKind, body, systemWrite, { isTrusted: true }).committed
  if (equalJson(body.spec, (live as JsonObject).spec)) return
  const target = { namespace: '', name, subresource: '' }
  const change = (current: JsonObject): Identified => {
    const { finalizers: _ours, ...metadata } = body.metadata
    return { ...body, metadata: { ...(current.metadata as Identified['metadata']), ...metadata } }
  }
  return updateObject(context, crdKind, target, systemWrite, change, { isTrusted: true }).committed
}
