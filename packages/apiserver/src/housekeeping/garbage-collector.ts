import type { KubeObject } from '@corral/resources'
import { type KeyedWorker, keyedWorker } from '@corral/runtime'
import { ORPHAN_FINALIZER, planGarbage } from './garbage-plan.js'
import type { Housekeeper, HousekeeperPorts } from './housekeeper.js'
import type { HousekeepingStore, ObjectEvent } from './housekeeping-store.js'
import { OwnerGraph } from './owner-graph.js'

/** Deletes what lost its owners; carries out foreground and orphan deletion. */
export function garbageCollector({ store, log }: HousekeeperPorts): Housekeeper {
  const graph = new OwnerGraph()
  const worker = keyedWorker({
    name: 'garbage-collector',
    workers: 32,
    work: (uid) => collect(uid, graph, store, worker),
    log,
  })
  return {
    load() {
      for (const { resource } of store.resources()) {
        for (const object of store.list(resource)) graph.put(resource, object)
      }
      for (const uid of graph.uids()) if (isConcern(graph, uid)) worker.add(uid)
    },
    observe(event) {
      observe(event, graph, worker)
    },
    idle: () => worker.idle(),
    close: () => worker.close(),
  }
}

function isConcern(graph: OwnerGraph, uid: string): boolean {
  const metadata = graph.find(uid)?.metadata
  return metadata?.deletionTimestamp !== undefined || (metadata?.ownerReferences?.length ?? 0) > 0
}

function observe(event: ObjectEvent, graph: OwnerGraph, worker: KeyedWorker): void {
  const { uid = '', ownerReferences = [] } = event.object.metadata ?? {}
  if (event.type !== 'DELETED') {
    if (graph.put(event.resource, event.object)) worker.add(uid)
    // Owners that wait may be waiting for a reference this change dropped.
    if (event.type === 'ADDED') return
  } else {
    const dependents = graph.dependentsOf(uid)
    graph.remove(uid)
    for (const { ref } of dependents) worker.add(ref.uid)
  }
  for (const owner of ownerReferences) {
    if (graph.find(owner.uid)?.metadata.deletionTimestamp) worker.add(owner.uid)
  }
}

async function collect(uid: string, graph: OwnerGraph, store: HousekeepingStore, worker: KeyedWorker): Promise<void> {
  const node = graph.find(uid)
  if (!node) return
  const dependents = graph.dependentsOf(uid)
  const plan = planGarbage({
    metadata: node.metadata,
    ownerState: (owner) => graph.ownerState(owner, node.ref.namespace),
    dependents: dependents.map((each) => each.metadata),
  })
  switch (plan.action) {
    case 'keep':
      return
    case 'delete':
      return store.delete(node.ref, { propagationPolicy: plan.propagationPolicy })
    case 'dropOwners':
      return store.update(node.ref, (object) => withoutOwners(object, plan.uids))
    case 'removeFinalizer':
      return store.update(node.ref, (object) => withoutFinalizer(object, plan.finalizer))
    case 'orphanDependents':
      await Promise.all(dependents.map(({ ref }) => store.update(ref, (object) => withoutOwners(object, [uid]))))
      return store.update(node.ref, (object) => withoutFinalizer(object, ORPHAN_FINALIZER))
    case 'collectDependents':
      for (const { ref } of dependents) worker.add(ref.uid)
      return
  }
}

/** The object without references to these owners; undefined when it has none of them. */
export function withoutOwners(object: KubeObject, uids: readonly string[]): KubeObject | undefined {
  const owners = object.metadata?.ownerReferences ?? []
  const gone = new Set(uids)
  const left = owners.filter((owner) => !gone.has(owner.uid))
  if (left.length === owners.length) return undefined
  const { ownerReferences: _dropped, ...metadata } = object.metadata ?? {}
  return { ...object, metadata: left.length > 0 ? { ...metadata, ownerReferences: left } : metadata }
}

/** The object without this finalizer; undefined when it does not have it. */
export function withoutFinalizer(object: KubeObject, finalizer: string): KubeObject | undefined {
  const finalizers = object.metadata?.finalizers ?? []
  if (!finalizers.includes(finalizer)) return undefined
  const left = finalizers.filter((each) => each !== finalizer)
  const { finalizers: _dropped, ...metadata } = object.metadata ?? {}
  return { ...object, metadata: left.length > 0 ? { ...metadata, finalizers: left } : metadata }
}
