import type { ObjectKey } from '@corral/runtime'

/** No metadata patch waits longer than this, whatever the window. */
const longestDeferralMs = 1_000

/**
 * Since when each Sandbox has a metadata patch waiting. Kept in memory only: a restart begins the window anew, which
 * delays a patch by one more window and loses nothing.
 */
export class Deferrals {
  readonly #since = new Map<ObjectKey, number>()
  readonly #windowMs: number
  constructor(windowMs: number) {
    this.#windowMs = Math.min(windowMs, longestDeferralMs)
  }

  /** How long a patch noticed now may still wait; 0 once it is due or where deferring is off. */
  leftMs(key: ObjectKey, now: Date): number {
    if (this.#windowMs <= 0) return 0
    const since = this.#since.get(key) ?? now.getTime()
    return Math.max(0, since + this.#windowMs - now.getTime())
  }

  begin(key: ObjectKey, now: Date): void {
    if (!this.#since.has(key)) this.#since.set(key, now.getTime())
  }

  end(key: ObjectKey): void {
    this.#since.delete(key)
  }

  get size(): number {
    return this.#since.size
  }
}
