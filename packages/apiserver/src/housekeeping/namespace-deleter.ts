import type { KubeObject, Namespace } from '@corral/resources'
import { keyedWorker } from '@corral/runtime'
import type { Housekeeper, HousekeeperPorts } from './housekeeper.js'
import { type HousekeepingStore, type ObjectRef, refOf } from './housekeeping-store.js'

export const NAMESPACE_FINALIZER = 'kubernetes'
const NAMESPACES = 'namespaces'

/** Empties namespaces that are being deleted, then lets them go by clearing their finalizer. */
export function namespaceDeleter({ store, log }: HousekeeperPorts): Housekeeper {
  const terminating = new Set<string>()
  const worker = keyedWorker({
    name: 'namespace-deleter',
    workers: 4,
    work: (name) => emptyNamespace(name, store),
    log,
  })

  const follow = (namespace: KubeObject): void => {
    const name = namespace.metadata?.name ?? ''
    if (!isTerminating(namespace)) return
    terminating.add(name)
    worker.add(name)
  }

  return {
    load() {
      for (const namespace of store.list(NAMESPACES)) follow(namespace)
    },
    observe(event) {
      const { name = '', namespace = '' } = event.object.metadata ?? {}
      if (event.resource === NAMESPACES) {
        if (event.type === 'DELETED') terminating.delete(name)
        else follow(event.object)
      } else if (event.type === 'DELETED' && terminating.has(namespace)) worker.add(namespace)
    },
    idle: () => worker.idle(),
    close: () => worker.close(),
  }
}

function isTerminating(namespace: Namespace): boolean {
  return (
    namespace.metadata?.deletionTimestamp !== undefined &&
    (namespace.spec?.finalizers ?? []).includes(NAMESPACE_FINALIZER)
  )
}

async function emptyNamespace(name: string, store: HousekeepingStore): Promise<void> {
  const namespace = [...store.list(NAMESPACES)].find((each) => each.metadata?.name === name)
  if (!namespace || !isTerminating(namespace)) return
  const content = contentOf(name, store)
  if (content.length === 0) {
    await store.update(refOf(NAMESPACES, namespace), finalized, { subresource: 'finalize' })
    return
  }
  const leaving = content.filter(({ object }) => object.metadata?.deletionTimestamp === undefined)
  await Promise.all(leaving.map(({ ref }) => store.delete(ref, { propagationPolicy: 'Background' })))
}

function contentOf(namespace: string, store: HousekeepingStore): { ref: ObjectRef; object: KubeObject }[] {
  const content: { ref: ObjectRef; object: KubeObject }[] = []
  for (const { resource, namespaced } of store.resources()) {
    if (!namespaced) continue
    for (const object of store.list(resource)) {
      if (object.metadata?.namespace === namespace) content.push({ ref: refOf(resource, object), object })
    }
  }
  return content
}

function finalized(object: KubeObject): Namespace | undefined {
  const namespace: Namespace = object
  if (!isTerminating(namespace)) return undefined
  const finalizers = (namespace.spec?.finalizers ?? []).filter((each) => each !== NAMESPACE_FINALIZER)
  return { ...namespace, spec: { ...namespace.spec, finalizers } }
}
