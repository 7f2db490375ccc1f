import type { CustomResourceDefinition, KubeObject } from '@corral/resources'
import type { KindDefinition } from '../registry/kind-definition.js'
import type { KindRegistry } from '../registry/kind-registry.js'
import type { ObjectStore } from '../store/object-store.js'
import { crdKind } from './crd-kind.js'
import { customKinds } from './custom-kind.js'

/**
 * Keeps the registry equal to the stored definitions: in the turn in which one becomes visible its kinds are served, in
 * the turn in which it goes they are not. Returns a function that stops it.
 */
export function followDefinitions(store: ObjectStore, registry: KindRegistry): () => void {
  const installed = new Map<string, KindDefinition[]>()

  const uninstall = (name: string): void => {
    for (const kind of installed.get(name) ?? []) registry.remove(kind)
    installed.delete(name)
  }
  const install = (crd: KubeObject): void => {
    const name = crd.metadata?.name ?? ''
    const kinds = customKinds(crd as CustomResourceDefinition)
    uninstall(name)
    installed.set(name, kinds)
    for (const kind of kinds) registry.add(kind)
  }

  for (const crd of store.collection(crdKind.collection).list()) install(crd)
  return store.listen((collection, event) => {
    if (collection !== crdKind.collection) return
    if (event.type === 'DELETED') uninstall(event.name)
    else if (event.type === 'ADDED' || !sameSpec(event.object, event.previous)) install(event.object)
  })
}

/** Definitions change their status far more often than their spec; recompiling would throw away what is warm. */
function sameSpec(a: KubeObject, b: KubeObject | undefined): boolean {
  return b !== undefined && a.metadata?.generation === b.metadata?.generation
}
