import type { Clock } from '@corral/ports'
import type { KubeObject, Stored } from '@corral/resources'
import { keyOf, type ObjectKey } from '@corral/runtime'

/** When this process first saw each claim. A claim made anew under an old name counts as another one. */
export class ObservedTimes {
  readonly #byKey = new Map<ObjectKey, { uid: string; at: Date }>()
  constructor(private readonly clock: Clock) {}

  /** The recorded time, recording now as such if there is none for this uid. */
  of(claim: Stored<KubeObject>): Date {
    const key = keyOf(claim)
    const known = this.#byKey.get(key)
    if (known?.uid === claim.metadata.uid) return known.at
    const at = this.clock.now()
    this.#byKey.set(key, { uid: claim.metadata.uid, at })
    return at
  }

  /** Forgets the claim unless a successor of the same name is what is recorded. */
  drop(claim: Stored<KubeObject>): void {
    const key = keyOf(claim)
    if (this.#byKey.get(key)?.uid === claim.metadata.uid) this.#byKey.delete(key)
  }

  dropKey(key: ObjectKey): void {
    this.#byKey.delete(key)
  }

  get size(): number {
    return this.#byKey.size
  }
}
