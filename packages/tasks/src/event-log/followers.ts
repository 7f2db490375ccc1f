/** A reader that waits for more events of one log. */
export interface Follower {
  /** True once nothing more will come: what can be read now is all there is. */
  readonly isLast: boolean
  /** Resolves when something has changed since the last call, after `atMostMs`, or when the reader's signal is aborted. */
  next(atMostMs?: number): Promise<void>
  leave(): void
}

interface Waiting {
  changed: boolean
  isLast: boolean
  wake: (() => void) | undefined
}

/**
 * Wakes the readers of logs. A change is remembered until the follower asks for it, so one that is busy with its client
 * misses nothing, and any number of changes wakes it once.
 */
export class Followers {
  readonly #byLog = new Map<string, Set<Waiting>>()

  follow(log: string, signal?: AbortSignal): Follower {
    const waiting: Waiting = { changed: false, isLast: false, wake: undefined }
    const onAbort = (): void => waiting.wake?.()
    signal?.addEventListener('abort', onAbort)
    const all = this.#byLog.get(log) ?? new Set()
    this.#byLog.set(log, all.add(waiting))
    return {
      get isLast() {
        return waiting.isLast
      },
      async next(atMostMs) {
        let timer: NodeJS.Timeout | undefined
        if (!waiting.changed && !signal?.aborted)
          await new Promise<void>((resolve) => {
            waiting.wake = resolve
            if (atMostMs !== undefined) timer = setTimeout(resolve, atMostMs)
          })
        clearTimeout(timer)
        waiting.changed = false
        waiting.wake = undefined
      },
      leave: () => {
        signal?.removeEventListener('abort', onAbort)
        all.delete(waiting)
        if (all.size === 0 && this.#byLog.get(log) === all) this.#byLog.delete(log)
      },
    }
  }

  has(log: string): boolean {
    return this.#byLog.has(log)
  }

  changed(log: string): void {
    for (const waiting of this.#byLog.get(log) ?? []) {
      waiting.changed = true
      waiting.wake?.()
    }
  }

  /** Nothing more will come to this log. */
  end(log: string): void {
    for (const waiting of this.#byLog.get(log) ?? []) waiting.isLast = true
    this.changed(log)
  }

  endAll(): void {
    for (const log of [...this.#byLog.keys()]) this.end(log)
  }
}
