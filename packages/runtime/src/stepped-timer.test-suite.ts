import type { Timer } from './timer.js'

/** A clock that moves only when told to, for tests. */
export interface SteppedTimer extends Timer {
  /** Lets the time pass and runs what becomes due, in order. */
  advance(ms: number): void
}

export function steppedTimer(startMs = 0): SteppedTimer {
  let nowMs = startMs
  let waiting: { atMs: number; run: () => void }[] = []
  return {
    now: () => new Date(nowMs),
    after(delayMs, run) {
      const entry = { atMs: nowMs + delayMs, run }
      waiting.push(entry)
      return () => {
        waiting = waiting.filter((other) => other !== entry)
      }
    },
    advance(ms) {
      const endMs = nowMs + ms
      for (;;) {
        const [next] = waiting.filter((entry) => entry.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)
        if (!next) break
        waiting = waiting.filter((entry) => entry !== next)
        nowMs = next.atMs
        next.run()
      }
      nowMs = endMs
    },
  }
}
