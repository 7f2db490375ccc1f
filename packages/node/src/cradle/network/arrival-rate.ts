/** How much of what a pod sends is looked at: `burst` at once, `perSecond` from then on. */
export interface ArrivalLimit {
  burst: number
  perSecond: number
}

/**
 * Counts arrivals against a limit that fills up again with time. Each arrival is work of the platform's own process, at
 * its own weight: without a limit a pod spends the platform's share of the processor instead of its own.
 */
export class ArrivalRate {
  #left: number
  #filledAtMs: number

  constructor(
    private readonly limit: ArrivalLimit,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.#left = limit.burst
    this.#filledAtMs = nowMs()
  }

  /** Whether one more is within the limit. */
  take(): boolean {
    const { burst, perSecond } = this.limit
    const nowMs = this.nowMs()
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#filledAtMs) / 1000) * perSecond)
    this.#filledAtMs = nowMs
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}
