import type { Logger } from '@corral/resources'

const FIRST_RETRY_MS = 50
const LAST_RETRY_MS = 30_000

export interface KeyWorkerOptions {
  readonly work: (key: string) => Promise<void>
  readonly log: Logger
  readonly concurrency?: number
}

/**
 * Works on keys, one run per key at a time. A key added while it is worked on runs once more afterwards; a run that
 * throws is repeated with a growing pause. After `close` nothing new starts.
 */
export class KeyWorker {
  readonly #options: KeyWorkerOptions
  readonly #waiting = new Set<string>()
  readonly #running = new Map<string, Promise<void>>()
  readonly #failures = new Map<string, number>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #isClosed = false

  constructor(options: KeyWorkerOptions) {
    this.#options = options
  }

  add(key: string): void {
    if (this.#isClosed) return
    this.#waiting.add(key)
    this.#startNext()
  }

  /** Adds the key once the time has passed; a later call for the same key replaces an earlier one. */
  addAfter(key: string, delayMs: number): void {
    if (this.#isClosed) return
    clearTimeout(this.#timers.get(key))
    const timer = setTimeout(
      () => {
        this.#timers.delete(key)
        this.add(key)
      },
      Math.max(0, delayMs),
    )
    timer.unref()
    this.#timers.set(key, timer)
  }

  /** Settles when nothing is waiting or running; runs that wait for their retry do not count. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#waiting.clear()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    await this.idle()
  }

  #startNext(): void {
    const limit = this.#options.concurrency ?? 8
    for (const key of this.#waiting) {
      if (this.#running.size >= limit) return
      if (this.#running.has(key)) continue
      this.#waiting.delete(key)
      this.#running.set(key, this.#run(key))
    }
  }

  async #run(key: string): Promise<void> {
    // A turn later, so that a burst of events about one key becomes one run.
    await new Promise((resolve) => setImmediate(resolve))
    try {
      await this.#options.work(key)
      this.#failures.delete(key)
    } catch (error) {
      const failures = (this.#failures.get(key) ?? 0) + 1
      this.#failures.set(key, failures)
      this.#options.log.warn('collector run failed', { key, failures, error })
      this.addAfter(key, Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1)))
    } finally {
      this.#running.delete(key)
      if (!this.#isClosed) this.#startNext()
    }
  }
}
