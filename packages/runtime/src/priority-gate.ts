import { Fifo } from './fifo.js'
import { systemTimer, type Timer } from './timer.js'

export interface PriorityGateOptions {
  timer?: Timer
  /** Low-priority calls that may run at once while no high-priority call runs. */
  lowConcurrency?: number
  /** The same limit for a second after the last high-priority call: the next one would queue behind these at the server. */
  lowConcurrencyAfterHigh?: number
  /** The same limit for low-priority calls that run beside high-priority ones because they waited `maxLowWaitMs`. */
  lowConcurrencyBesideHigh?: number
  /** After this time a low-priority call no longer waits for high-priority calls to end. */
  maxLowWaitMs?: number
}

/**
 * Low-priority calls that start in one turn of the event loop may take this long together. The rest start in a later turn, so that
 * a claim that arrived meanwhile is served first.
 */
const maxTurnMs = 5

/** How long after a high-priority call the stricter limit holds: claims come in bursts. */
const quietAfterMs = 1_000

interface Waiting {
  readonly dueAtMs: number
  readonly signal: AbortSignal | undefined
  readonly go: () => void
  readonly leave: (reason: unknown) => void
}

/**
 * Two priorities of calls to one API server. A high-priority call runs at once. A low-priority call waits, first in first out, until
 * no high-priority call runs or until it has waited `maxLowWaitMs`; only a few low-priority calls run at once. Without it a burst of
 * claims waits behind the status updates, events and pool refills that earlier claims caused.
 */
export class PriorityGate {
  readonly #timer: Timer
  readonly #lowConcurrency: number
  readonly #lowConcurrencyAfterHigh: number
  readonly #lowConcurrencyBesideHigh: number
  readonly #maxLowWaitMs: number
  readonly #waiting = new Fifo<Waiting>()
  /** Signals that have our abort listener. Most calls share one signal, and a listener per call would cost more than its wait. */
  readonly #listening = new WeakSet<AbortSignal>()
  #head: Waiting | undefined
  #highRunning = 0
  #lowRunning = 0
  #isOpen = false
  #quietFromMs = 0
  #cancelAlarm: (() => void) | undefined
  #turnEndsAtMs: number | undefined

  constructor(options: PriorityGateOptions = {}) {
    const { timer = systemTimer, lowConcurrency = 16, maxLowWaitMs = 5_000 } = options
    this.#timer = timer
    this.#lowConcurrency = lowConcurrency
    this.#lowConcurrencyAfterHigh = Math.min(options.lowConcurrencyAfterHigh ?? 8, lowConcurrency)
    this.#lowConcurrencyBesideHigh = options.lowConcurrencyBesideHigh ?? 4
    this.#maxLowWaitMs = maxLowWaitMs
  }

  /** Runs at once. Until it has settled, low-priority calls wait. */
  async high<T>(run: () => Promise<T>): Promise<T> {
    this.#highRunning += 1
    try {
      return await run()
    } finally {
      this.#highRunning -= 1
      this.#quietFromMs = this.#nowMs() + quietAfterMs
      this.#release()
    }
  }

  /** Runs when no high-priority call runs, or after `maxLowWaitMs`. Rejects with the signal's reason when aborted before that. */
  async low<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (!this.#mayGo(Number.POSITIVE_INFINITY) || this.#head) await this.#turn(signal)
    else this.#lowRunning += 1
    try {
      return await run()
    } finally {
      this.#lowRunning -= 1
      this.#release()
    }
  }

  /** Lets every waiting and future call run at once: for the shutdown. */
  open(): void {
    this.#isOpen = true
    this.#release()
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      if (signal) this.#listen(signal)
      const go = (): void => {
        this.#lowRunning += 1
        resolve()
      }
      this.#waiting.push({ dueAtMs: this.#nowMs() + this.#maxLowWaitMs, signal, go, leave: reject })
      this.#release()
    })
  }

  #listen(signal: AbortSignal): void {
    if (this.#listening.has(signal)) return
    this.#listening.add(signal)
    const leave = (entry: Waiting | undefined): void => {
      if (entry?.signal === signal) entry.leave(signal.reason)
    }
    const onAbort = (): void => {
      leave(this.#head)
      for (const entry of this.#waiting) leave(entry)
      this.#release()
    }
    signal.addEventListener('abort', onAbort, { once: true })
  }

  #mayGo(dueAtMs: number): boolean {
    if (this.#isOpen) return true
    const nowMs = this.#nowMs()
    const isFree =
      this.#highRunning === 0
        ? this.#lowRunning < (nowMs < this.#quietFromMs ? this.#lowConcurrencyAfterHigh : this.#lowConcurrency)
        : this.#lowRunning < this.#lowConcurrencyBesideHigh && dueAtMs <= nowMs
    return isFree && this.#hasTime(nowMs)
  }

  /** Whether this turn of the event loop has time left for one more call; if not, the next turn goes on. */
  #hasTime(nowMs: number): boolean {
    if (this.#turnEndsAtMs !== undefined) return nowMs < this.#turnEndsAtMs
    this.#turnEndsAtMs = nowMs + maxTurnMs
    const next = (): void => {
      this.#turnEndsAtMs = undefined
      this.#release()
    }
    // Two, so that the event loop polls for new I/O in between.
    setImmediate(() => setImmediate(next))
    return true
  }

  #release(): void {
    for (;;) {
      this.#head ??= this.#waiting.shift()
      const head = this.#head
      if (!head) break
      if (!head.signal?.aborted) {
        if (!this.#mayGo(head.dueAtMs)) break
        head.go()
      }
      this.#head = undefined
    }
    this.#setAlarm()
  }

  /** Wakes the gate when the first waiting call is due, in case no running call ends before that. */
  #setAlarm(): void {
    if (!this.#head) {
      this.#cancelAlarm?.()
      this.#cancelAlarm = undefined
      return
    }
    // An alarm that is already set fires too early at worst, and is then set again.
    if (this.#cancelAlarm || this.#lowRunning >= this.#lowConcurrencyBesideHigh) return
    const wake = (): void => {
      this.#cancelAlarm = undefined
      this.#release()
    }
    this.#cancelAlarm = this.#timer.after(Math.max(1, this.#head.dueAtMs - this.#nowMs()), wake)
  }

  #nowMs(): number {
    return this.#timer.now().getTime()
  }
}
