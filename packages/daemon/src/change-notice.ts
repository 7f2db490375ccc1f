/** Wakes every waiter for a change. A change without a waiter is not remembered. */
export class ChangeNotice {
  #waiters = new Set<() => void>()

  notify(): void {
    const waiters = this.#waiters
    this.#waiters = new Set()
    for (const wake of waiters) wake()
  }

  /** Resolves at the next change, after `timeoutMs`, or when `signal` aborts. Never rejects. */
  wait(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        this.#waiters.delete(wake)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const timer = setTimeout(wake, timeoutMs)
      this.#waiters.add(wake)
      signal?.addEventListener('abort', wake, { once: true })
      if (signal?.aborted) wake()
    })
  }
}
