const firstRetryMs = 200
const longestRetryMs = 30_000

export interface PassLoopOptions {
  /** No pass begins after it. */
  signal: AbortSignal
  pass(): Promise<void>
  /** Told of every pass that failed, before the wait for the next one. */
  onFailed(error: unknown): Promise<void>
}

/**
 * Runs passes one at a time. A call of `wake` during a pass brings one more after it, many calls bring the same one. A pass
 * that failed is tried again after a wait that doubles.
 */
export class PassLoop {
  readonly #options: PassLoopOptions
  #isDirty = false
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0

  constructor(options: PassLoopOptions) {
    this.#options = options
  }

  /** Whether another pass follows the one that runs. */
  get isDirty(): boolean {
    return this.#isDirty
  }

  wake(): void {
    if (this.#options.signal.aborted) return
    this.#isDirty = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  /** Replaces an earlier wait; every pass does. */
  wakeIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.wake(), Math.max(1, delayMs))
  }

  /** Ends the wait after a pass that failed. */
  retry(): void {
    if (this.#failures > 0) this.wake()
  }

  /** To be called once the signal is aborted; settles after the last pass. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal, pass, onFailed } = this.#options
    clearTimeout(this.#timer)
    try {
      while (this.#isDirty && !signal.aborted) {
        this.#isDirty = false
        await pass()
      }
      this.#failures = 0
    } catch (error) {
      if (signal.aborted) return
      await onFailed(error)
      this.wakeIn(Math.min(firstRetryMs * 2 ** this.#failures++, longestRetryMs))
    }
  }
}
