/** Providers that said "not now", and until when no further agent should be started on them. */
export interface ProviderHolds {
  note(provider: string, waitMs: number): void
  /** A call went through: the provider answers again. */
  clear(provider: string): void
  /** Told when a hold begins, moves or is cleared, not when its time is over. Answers how to stop it. */
  onChange(listener: (provider: string) => void): () => void
  /** Undefined where nothing is held back. */
  heldUntil(provider: string): Date | undefined
}

/** A provider that names a far day is asked again sooner. */
const maxHoldMs = 5 * 60_000

export function createProviderHolds(options: { now: () => number }): ProviderHolds {
  const until = new Map<string, number>()
  const listeners = new Set<(provider: string) => void>()
  const tell = (provider: string): void => {
    for (const listener of listeners) listener(provider)
  }
  return {
    note(provider, waitMs) {
      const endMs = options.now() + Math.min(maxHoldMs, waitMs)
      if (endMs <= (until.get(provider) ?? 0)) return
      until.set(provider, endMs)
      tell(provider)
    },
    clear(provider) {
      if (until.delete(provider)) tell(provider)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    heldUntil(provider) {
      const endMs = until.get(provider) ?? 0
      return endMs > options.now() ? new Date(endMs) : undefined
    },
  }
}

const maxRetryAfterMs = 24 * 60 * 60_000

/** How long a provider asks to wait: its header in seconds, milliseconds or as a date, or Google's `retryDelay`. */
export function retryAfterMs(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: string,
  now: number,
): number | undefined {
  const milliseconds = Number(headers['retry-after-ms'])
  if (headers['retry-after-ms'] !== undefined && milliseconds >= 0) return Math.min(milliseconds, maxRetryAfterMs)
  const value = headers['retry-after']
  if (typeof value === 'string') {
    const seconds = Number(value)
    if (seconds >= 0) return Math.min(seconds * 1000, maxRetryAfterMs)
    const date = Date.parse(value)
    if (!Number.isNaN(date)) return Math.min(Math.max(0, date - now), maxRetryAfterMs)
  }
  const delay = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(body)?.[1]
  return delay === undefined ? undefined : Math.min(Number(delay) * 1000, maxRetryAfterMs)
}
