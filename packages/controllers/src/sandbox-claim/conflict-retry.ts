import { setTimeout as sleep } from 'node:timers/promises'
import { isConflict } from '@corral/resources'

const tries = 5
const pauseMs = 10

/** Calls until it does not conflict any more, five times at most; the last conflict is thrown. Every try reads afresh. */
export async function retryOnConflict<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let left = tries - 1; ; left -= 1) {
    try {
      return await attempt()
    } catch (error) {
      if (!isConflict(error) || left === 0) throw error
    }
    await sleep(pauseMs * (1 + 0.1 * Math.random()), undefined, { signal })
  }
}
