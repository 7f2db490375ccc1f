import type { KubeObject, ObjectMeta } from '@corral/resources'
import { type OwnerState, ownerStateOf } from './garbage-plan.js'
import { type ObjectRef, refOf } from './housekeeping-store.js'

interface Node {
  readonly ref: ObjectRef
  readonly metadata: ObjectMeta
}

/** Who owns whom, by uid, kept up to date from events. */
export class OwnerGraph {
  readonly #nodes = new Map<string, Node>()
  readonly #dependents = new Map<string, Set<string>>()

  /** Takes in a new state and says whether ownership or deletion is any of the object's business. */
  put(resource: string, object: KubeObject): boolean {
    const ref = refOf(resource, object)
    const metadata = object.metadata ?? {}
    const before = this.#nodes.get(ref.uid)
    this.#nodes.set(ref.uid, { ref, metadata })
    if (before?.metadata.ownerReferences !== metadata.ownerReferences) {
      this.#unlink(ref.uid, before?.metadata)
      for (const owner of metadata.ownerReferences ?? []) this.#link(owner.uid, ref.uid)
    }
    return metadata.deletionTimestamp !== undefined || (metadata.ownerReferences?.length ?? 0) > 0
  }

  remove(uid: string): void {
    this.#unlink(uid, this.#nodes.get(uid)?.metadata)
    this.#nodes.delete(uid)
  }

  find(uid: string): Node | undefined {
    return this.#nodes.get(uid)
  }

  dependentsOf(uid: string): Node[] {
    const nodes: Node[] = []
    for (const dependent of this.#dependents.get(uid) ?? []) {
      const node = this.#nodes.get(dependent)
      if (node) nodes.push(node)
    }
    return nodes
  }

  uids(): Iterable<string> {
    return this.#nodes.keys()
  }

  /** An owner counts only from the same namespace or when it is cluster-scoped. */
  ownerState(uid: string, namespace: string): OwnerState {
    const owner = this.#nodes.get(uid)
    const isReachable = owner && (owner.ref.namespace === '' || owner.ref.namespace === namespace)
    return ownerStateOf(isReachable ? owner.metadata : undefined)
  }

  #link(owner: string, dependent: string): void {
    const set = this.#dependents.get(owner)
    if (set) set.add(dependent)
    else this.#dependents.set(owner, new Set([dependent]))
  }

  #unlink(uid: string, metadata: ObjectMeta | undefined): void {
    for (const owner of metadata?.ownerReferences ?? []) {
      const set = this.#dependents.get(owner.uid)
      set?.delete(uid)
      if (set?.size === 0) this.#dependents.delete(owner.uid)
    }
  }
}
