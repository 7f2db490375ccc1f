import { randomBytes } from 'node:crypto'
import type { Fetch } from '@corral/protocol'

/** Seconds behind each other, so that a router that learns of a pod late is asked for about eight. */
const pausesMs = [0, 500, 1_000, 2_000, 4_000] as const
const retried = new Set([500, 502, 503, 504])
export const requestIdHeader = 'x-request-id'

/**
 * Asks again what only reads, while something on the way says that it cannot reach the sandbox: a claim is ready before every
 * router knows its pod. What may change something is sent once. All attempts carry one request id.
 */
export function retryingFetch(
  send: Fetch,
  options: { wait?: (ms: number, signal: AbortSignal | undefined) => Promise<void>; random?: () => number } = {},
): Fetch {
  const { wait = pause, random = Math.random } = options
  return async (url, init = {}) => {
    const headers = new Headers(init.headers)
    if (!headers.has(requestIdHeader)) headers.set(requestIdHeader, randomBytes(8).toString('hex'))
    const isRead = ['GET', 'HEAD'].includes(init.method ?? 'GET')
    for (let attempt = 0; ; attempt++) {
      const answer = await send(url, { ...init, headers })
      const pauseMs = pausesMs[attempt]
      if (!isRead || pauseMs === undefined || !retried.has(answer.status)) return answer
      await answer.body?.cancel()
      await wait(pauseMs * (0.75 + random() / 2), init.signal ?? undefined)
    }
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason instanceof Error ? signal.reason : new Error('the call was aborted'))
    }
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop, { once: true })
  })
}
