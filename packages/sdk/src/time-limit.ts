import { SandboxError } from './sandbox-error.js'

/** What a timer of Node can count to; longer ones would fire at once. */
export const longestMs: number = 2 ** 31 - 1

/** A time limit as a timer takes it: undefined for none, which is also what `Infinity` asks for. `Invalid` where it is none. */
export function timeLimit(timeoutMs: number | undefined): number | undefined {
  if (timeoutMs === undefined) return undefined
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0))
    throw new SandboxError('Invalid', `a time limit of ${timeoutMs} ms cannot be: it must be a positive number`)
  return timeoutMs > longestMs ? undefined : Math.ceil(timeoutMs)
}

/** Aborts when the time is over; never where there is no limit. */
export function timeSignal(timeoutMs: number | undefined): AbortSignal {
  const limitMs = timeLimit(timeoutMs)
  return limitMs === undefined ? new AbortController().signal : AbortSignal.timeout(limitMs)
}
