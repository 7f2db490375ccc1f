const signals = ['SIGINT', 'SIGTERM'] as const
const timeoutMs = 10_000

/**
 * Deletes what is tracked when the program ends in an orderly way: it runs dry, or gets SIGINT or SIGTERM. A program that
 * is killed leaves its sandboxes to their time limit.
 */
export class ExitCleanup {
  readonly #tracked = new Map<object, (signal: AbortSignal) => Promise<void>>()
  readonly #onSignal = (signal: NodeJS.Signals) => void this.#cleanAndRaise(signal)
  readonly #onIdle = () => void this.#clean()
  #isListening = false

  track(owner: object, remove: (signal: AbortSignal) => Promise<void>): void {
    this.#tracked.set(owner, remove)
    if (this.#isListening) return
    this.#isListening = true
    process.on('beforeExit', this.#onIdle)
    for (const signal of signals) process.once(signal, this.#onSignal)
  }

  forget(owner: object): void {
    this.#tracked.delete(owner)
    if (this.#tracked.size === 0) this.#stop()
  }

  async #cleanAndRaise(signal: NodeJS.Signals): Promise<void> {
    await this.#clean()
    // With our listener gone the signal does what it does to any program.
    process.kill(process.pid, signal)
  }

  async #clean(): Promise<void> {
    const removals = [...this.#tracked.values()]
    this.#tracked.clear()
    this.#stop()
    const limit = AbortSignal.timeout(timeoutMs)
    const results = await Promise.allSettled(removals.map((remove) => remove(limit)))
    for (const result of results) {
      if (result.status === 'rejected') process.emitWarning(`a sandbox could not be deleted: ${String(result.reason)}`)
    }
  }

  #stop(): void {
    if (!this.#isListening) return
    this.#isListening = false
    process.off('beforeExit', this.#onIdle)
    for (const signal of signals) process.off(signal, this.#onSignal)
  }
}
