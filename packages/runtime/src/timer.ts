import { type Clock, systemClock } from '@corral/ports'

/** A clock with timers. Tests pass one that they advance by hand. */
export interface Timer extends Clock {
  /** Calls `run` once, `delayMs` from now at the earliest. The returned function cancels it and may be called twice. */
  after(delayMs: number, run: () => void): () => void
}

/** setTimeout fires at once for anything longer than this. */
const longestTimeoutMs = 2 ** 31 - 1

/** The machine's own clock and timers. A pending timer alone does not keep the process alive. */
export const systemTimer: Timer = {
  now: () => systemClock.now(),
  after(delayMs, run) {
    let handle: NodeJS.Timeout
    const arm = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, longestTimeoutMs)
      handle = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), Math.max(0, stepMs))
      handle.unref()
    }
    arm(delayMs)
    return () => clearTimeout(handle)
  },
}
