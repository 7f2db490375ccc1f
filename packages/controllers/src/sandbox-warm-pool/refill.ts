import type { Clock } from '@corral/ports'
import type { ObjectKey } from '@corral/runtime'

/** Paces how many members a pool may create: a token bucket per pool, full at first. Rate 0 lets everything through. */
export class RefillBuckets {
  readonly #byPool = new Map<ObjectKey, { tokens: number; atMs: number }>()
  constructor(
    private readonly clock: Clock,
    private readonly perSecond: number,
  ) {}

  /** Tokens for up to `wanted` creations. With none left, how long until there is one. */
  take(pool: ObjectKey, wanted: number): { granted: number; waitMs?: number } {
    if (this.perSecond <= 0) return { granted: wanted }
    const nowMs = this.clock.now().getTime()
    const bucket = this.#byPool.get(pool) ?? { tokens: this.#capacity, atMs: nowMs }
    const accrued = ((nowMs - bucket.atMs) / 1000) * this.perSecond
    const tokens = Math.min(this.#capacity, bucket.tokens + Math.max(0, accrued))
    const granted = Math.min(wanted, Math.floor(tokens))
    this.#byPool.set(pool, { tokens: tokens - granted, atMs: nowMs })
    if (granted > 0) return { granted }
    return { granted: 0, waitMs: Math.ceil(((1 - tokens) / this.perSecond) * 1000) }
  }

  /** Gives back what a pass took and did not use. */
  refund(pool: ObjectKey, count: number): void {
    const bucket = this.#byPool.get(pool)
    if (bucket) bucket.tokens = Math.min(this.#capacity, bucket.tokens + count)
  }

  forget(pool: ObjectKey): void {
    this.#byPool.delete(pool)
  }

  get #capacity(): number {
    return Math.max(1, this.perSecond)
  }
}

/**
 * Holds replacements back for a while after members left, so that what claimed them has the API server, or the machine, to
 * itself. Each further one that leaves starts the time anew, unless `isFixed`: then it ends when the first one's does.
 */
export class ReplenishHolds {
  readonly #byPool = new Map<ObjectKey, { lastCount: number; untilMs: number }>()
  constructor(
    private readonly clock: Clock,
    private readonly delayMs: number,
    private readonly isFixed = false,
  ) {}

  /** How long to hold, judged once per pass from the number of members, those on their way included. */
  remainingMs(pool: ObjectKey, current: number, desired: number): number {
    if (this.delayMs <= 0) return 0
    const nowMs = this.clock.now().getTime()
    const known = this.#byPool.get(pool)
    const dropped = known !== undefined && current < known.lastCount
    const untilMs = current >= desired ? 0 : (this.#begun(known, dropped, nowMs) ?? nowMs + this.delayMs)
    this.#byPool.set(pool, { lastCount: current, untilMs })
    return Math.max(0, untilMs - nowMs)
  }

  /** The end of the hold that goes on; `undefined` where a new one begins. */
  #begun(known: { untilMs: number } | undefined, dropped: boolean, nowMs: number): number | undefined {
    const untilMs = known?.untilMs ?? 0
    return dropped && !(this.isFixed && untilMs > nowMs) ? undefined : untilMs
  }

  forget(pool: ObjectKey): void {
    this.#byPool.delete(pool)
  }
}
