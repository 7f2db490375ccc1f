import { Fifo } from './fifo.js'
import { systemTimer, type Timer } from './timer.js'

export interface CourtesyOptions {
  timer?: Timer
  /** Patient calls that may be under way at once in quiet times. */
  atOnce?: number
  /** The same shortly after urgent work: more of it is likely to come, and must not find a crowd before it. */
  afterUrgent?: number
  /** The same for those that go beside urgent work because they have waited long enough. */
  besideUrgent?: number
  /** After this time a patient call waits no longer for urgent work to end. */
  longestWaitMs?: number
}

/** Patient calls that begin in one turn may take this long together; whoever has come meanwhile is heard before the next. */
const longestTurnMs = 5

/** Urgent work that comes often enough for this is not over when one piece of it ends. */
const quietAfterMs = 1_000

interface Waiting {
  readonly dueAtMs: number
  readonly signal: AbortSignal | undefined
  readonly go: () => void
  readonly leave: (reason: unknown) => void
}

/**
 * Lets work that somebody waits for go first on a server that is the bottleneck: while urgent work is under way patient
 * calls wait, in order and not for ever, and even then only a few of them run at once.
 */
export class Courtesy {
  readonly #timer: Timer
  readonly #atOnce: number
  readonly #afterUrgent: number
  readonly #besideUrgent: number
  readonly #longestWaitMs: number
  readonly #waiting = new Fifo<Waiting>()
  /** Those whose end is heard: most callers share one, and a listener for each call would cost more than its wait. */
  readonly #heard = new WeakSet<AbortSignal>()
  #head: Waiting | undefined
  #urgent = 0
  #running = 0
  #isOpen = false
  #quietFromMs = 0
  #cancelAlarm: (() => void) | undefined
  #turnEndsAtMs: number | undefined

  constructor(options: CourtesyOptions = {}) {
    const { timer = systemTimer, atOnce = 16, afterUrgent = 8, besideUrgent = 4, longestWaitMs = 5_000 } = options
    this.#timer = timer
    this.#atOnce = atOnce
    this.#afterUrgent = Math.min(afterUrgent, atOnce)
    this.#besideUrgent = besideUrgent
    this.#longestWaitMs = longestWaitMs
  }

  /** Runs at once. Until it has settled, patient calls wait. */
  async urgent<T>(run: () => Promise<T>): Promise<T> {
    this.#urgent += 1
    try {
      return await run()
    } finally {
      this.#urgent -= 1
      this.#quietFromMs = this.#nowMs() + quietAfterMs
      this.#release()
    }
  }

  /** Runs when nothing urgent is under way, or after the longest wait. Rejects with the signal's reason before that. */
  async patient<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (!this.#mayGo(Number.POSITIVE_INFINITY) || this.#head) await this.#turn(signal)
    else this.#running += 1
    try {
      return await run()
    } finally {
      this.#running -= 1
      this.#release()
    }
  }

  /** For the end: nobody waits any more. */
  open(): void {
    this.#isOpen = true
    this.#release()
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      if (signal) this.#hear(signal)
      const go = (): void => {
        this.#running += 1
        resolve()
      }
      this.#waiting.push({ dueAtMs: this.#nowMs() + this.#longestWaitMs, signal, go, leave: reject })
      this.#release()
    })
  }

  #hear(signal: AbortSignal): void {
    if (this.#heard.has(signal)) return
    this.#heard.add(signal)
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
      this.#urgent === 0
        ? this.#running < (nowMs < this.#quietFromMs ? this.#afterUrgent : this.#atOnce)
        : this.#running < this.#besideUrgent && dueAtMs <= nowMs
    return isFree && this.#hasTime(nowMs)
  }

  /** Whether the turn has time left for one more; if not, the line goes on in the next. */
  #hasTime(nowMs: number): boolean {
    if (this.#turnEndsAtMs !== undefined) return nowMs < this.#turnEndsAtMs
    this.#turnEndsAtMs = nowMs + longestTurnMs
    const next = (): void => {
      this.#turnEndsAtMs = undefined
      this.#release()
    }
    // The second comes after the event loop has looked who else is there.
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

  /** Somebody has to look when the first in line has waited long enough, should nothing end before that. */
  #setAlarm(): void {
    if (!this.#head) {
      this.#cancelAlarm?.()
      this.#cancelAlarm = undefined
      return
    }
    // One that is set comes too early at worst, and is set anew then.
    if (this.#cancelAlarm || this.#running >= this.#besideUrgent) return
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
