import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { DataDirectory } from './data-directory.js'

const checkMs = 2_000

/** Resolves once nothing was busy for `idleMs`, or at once when `signal` aborts; nothing of it keeps the process up then. */
export async function untilIdle(
  isBusy: () => boolean,
  { idleMs, signal }: { idleMs: number; signal: AbortSignal },
): Promise<void> {
  let quietSince = Date.now()
  while (!signal.aborted && Date.now() - quietSince < idleMs) {
    // The pause rejects when `signal` aborts; the condition of the loop ends it then.
    await pause(Math.min(checkMs, idleMs), undefined, { signal }).catch(() => undefined)
    if (isBusy()) quietSince = Date.now()
  }
}

/** Whether a platform that may end when idle has a reason not to: a task, or a user who asked for one that stays. */
export function isWanted(platform: { isBusy(): boolean }, directory: Pick<DataDirectory, 'stay'>): boolean {
  return platform.isBusy() || existsSync(directory.stay)
}
