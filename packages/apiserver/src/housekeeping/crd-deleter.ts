import type { CustomResourceDefinition, KubeObject } from '@corral/resources'
import { keyedWorker } from '@corral/runtime'
import { withoutFinalizer } from './garbage-collector.js'
import type { Housekeeper, HousekeeperPorts } from './housekeeper.js'
import { type HousekeepingStore, refOf } from './housekeeping-store.js'

export const CRD_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io'
const CRDS = 'customresourcedefinitions.apiextensions.k8s.io'

/** Deletes the objects of definitions that are being deleted, then lets the definitions go. */
export function crdDeleter({ store, log }: HousekeeperPorts): Housekeeper {
  const terminating = new Set<string>()
  const worker = keyedWorker({ name: 'crd-deleter', workers: 4, work: (name) => emptyDefinition(name, store), log })

  const follow = (crd: KubeObject): void => {
    if (!isTerminating(crd)) return
    // A definition is named like the resource it defines: plural.group.
    terminating.add(crd.metadata?.name ?? '')
    worker.add(crd.metadata?.name ?? '')
  }

  return {
    load() {
      for (const crd of store.list(CRDS)) follow(crd)
    },
    observe(event) {
      if (event.resource === CRDS) {
        if (event.type === 'DELETED') terminating.delete(event.object.metadata?.name ?? '')
        else follow(event.object)
      } else if (event.type === 'DELETED' && terminating.has(event.resource)) worker.add(event.resource)
    },
    idle: () => worker.idle(),
    close: () => worker.close(),
  }
}

function isTerminating(crd: CustomResourceDefinition | KubeObject): boolean {
  const { deletionTimestamp, finalizers } = crd.metadata ?? {}
  return deletionTimestamp !== undefined && (finalizers ?? []).includes(CRD_FINALIZER)
}

async function emptyDefinition(name: string, store: HousekeepingStore): Promise<void> {
  const crd = [...store.list(CRDS)].find((each) => each.metadata?.name === name)
  if (!crd || !isTerminating(crd)) return
  const objects = [...store.list(name)]
  if (objects.length === 0) {
    await store.update(refOf(CRDS, crd), (newest) => withoutFinalizer(newest, CRD_FINALIZER))
    return
  }
  const leaving = objects.filter((object) => object.metadata?.deletionTimestamp === undefined)
  await Promise.all(leaving.map((object) => store.delete(refOf(name, object), { propagationPolicy: 'Background' })))
}
