import { setTimeout as delay } from 'node:timers/promises'

export interface RateLimitOptions {
  /** Calls per second in the long run. */
  perSecond: number
  /** Calls that may come at once after a quiet time. */
  burst: number
}

/** A token bucket. Callers are served in the order they came. */
export class RateLimit {
  readonly #perMs: number
  readonly #burst: number
  readonly #nowMs: () => number
  #tokens: number
  #atMs: number

  constructor({ perSecond, burst }: RateLimitOptions, nowMs: () => number = () => performance.now()) {
    this.#perMs = perSecond / 1000
    this.#burst = Math.max(1, burst)
    this.#tokens = this.#burst
    this.#nowMs = nowMs
    this.#atMs = nowMs()
  }

  /** How long the next call has to wait; its token is taken, so the one after it waits longer. */
  reserveMs(): number {
    const nowMs = this.#nowMs()
    this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#atMs) * this.#perMs)
    this.#atMs = nowMs
    this.#tokens -= 1
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perMs
  }

  /** Resolves when the call may go; rejects with the signal's reason. */
  async take(signal?: AbortSignal): Promise<void> {
    const waitMs = this.reserveMs()
    if (waitMs <= 0) return
    try {
      await delay(waitMs, undefined, signal ? { signal } : {})
    } catch (error) {
      throw signal?.aborted ? signal.reason : error
    }
  }
}
