import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves after `milliseconds`. */
export function delay(milliseconds: number): Promise<void> {
  return sleep(milliseconds)
}
