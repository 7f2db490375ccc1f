/**
 * How long a test waits for something before it calls it hung. Only a guard: a machine that is busy with eight other
 * programs must never reach it, so it is not a figure of how fast anything should be.
 */
export const hangMs = 240_000

export interface WaitOptions {
  timeoutMs?: number
  intervalMs?: number
  /** What the probe saw last, told by the error. */
  lastSeen?: () => string
}

/**
 * Asks until the answer is neither `undefined` nor `false`, and answers it. After `timeoutMs` it throws, naming what
 * was waited for and the last failure of the probe. A probe that throws counts as "not yet".
 */
export async function waitUntil<T>(
  what: string,
  probe: () => T | Promise<T>,
  { timeoutMs = hangMs, intervalMs = 25, lastSeen }: WaitOptions = {},
): Promise<Exclude<Awaited<T>, undefined | false>> {
  const deadline = Date.now() + timeoutMs
  let failure: unknown
  for (;;) {
    try {
      const answer = await probe()
      if (answer !== undefined && answer !== false) return answer as Exclude<Awaited<T>, undefined | false>
      failure = undefined
    } catch (error) {
      failure = error
    }
    if (Date.now() >= deadline) {
      const seen = lastSeen ? `\n${lastSeen()}` : ''
      throw new Error(`not within ${timeoutMs} ms: ${what}${seen}`, { cause: failure })
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs))
  }
}
