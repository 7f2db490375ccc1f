import type { Clock } from '@corral/ports'
import type { ObjectKey } from './reconcile.js'

interface Expected {
  creations: number
  deletions: Set<string>
  raisedAtMs: number
}

/**
 * What a controller has asked the server for and not yet seen come back through its watch, per owner key. Without it a
 * pass that reads a cache older than its own writes creates everything twice. Lost events are survived by a time limit.
 */
export class Expectations {
  readonly #byKey = new Map<ObjectKey, Expected>()
  constructor(
    private readonly clock: Clock,
    private readonly timeoutMs: number = 5 * 60_000,
  ) {}

  /** Nothing is outstanding, or it has been outstanding longer than the limit. */
  isSatisfied(key: ObjectKey): boolean {
    const expected = this.#current(key)
    return !expected || (expected.creations <= 0 && expected.deletions.size === 0)
  }

  /** Records `count` creations if nothing is outstanding; false leaves everything as it was. */
  tryExpectCreations(key: ObjectKey, count: number): boolean {
    if (count <= 0 || !this.isSatisfied(key)) return false
    this.#byKey.set(key, { creations: count, deletions: new Set(), raisedAtMs: this.clock.now().getTime() })
    return true
  }

  /** Creations that were asked for and not yet seen. */
  pendingCreations(key: ObjectKey): number {
    return this.#current(key)?.creations ?? 0
  }

  /** Records that the object with this uid is being deleted. */
  expectDeletion(key: ObjectKey, uid: string | undefined): void {
    if (!uid) return
    const expected = this.#current(key) ?? { creations: 0, deletions: new Set<string>(), raisedAtMs: 0 }
    expected.deletions.add(uid)
    expected.raisedAtMs = this.clock.now().getTime()
    this.#byKey.set(key, expected)
  }

  /** A delete for this uid was issued and its object has not yet been seen to go. */
  isDeletionExpected(key: ObjectKey, uid: string | undefined): boolean {
    return uid !== undefined && (this.#current(key)?.deletions.has(uid) ?? false)
  }

  /** `count` creations were observed, or will never happen. */
  lowerCreations(key: ObjectKey, count = 1): void {
    const expected = this.#byKey.get(key)
    if (expected) expected.creations = Math.max(0, expected.creations - count)
  }

  /** The deletion was observed, or did not happen. */
  clearDeletion(key: ObjectKey, uid: string | undefined): void {
    if (uid !== undefined) this.#byKey.get(key)?.deletions.delete(uid)
  }

  forget(key: ObjectKey): void {
    this.#byKey.delete(key)
  }

  #current(key: ObjectKey): Expected | undefined {
    const expected = this.#byKey.get(key)
    if (expected && this.clock.now().getTime() - expected.raisedAtMs > this.timeoutMs) {
      this.#byKey.delete(key)
      return undefined
    }
    return expected
  }
}
