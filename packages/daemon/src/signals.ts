import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { SignalName } from '@corral/protocol'

/** Signals a process or its group. False when there is nothing left to signal. */
export function killGroup(pid: number, signal: SignalName, group: boolean): boolean {
  try {
    process.kill(group ? -pid : pid, signal)
    return true
  } catch {
    // No such process: it ended before the signal reached it.
    return false
  }
}

/** Whether this pid is still the wrapper of this record and not a stranger that got its number. */
export function isWrapperAlive(pid: number, directory: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(directory)
  } catch {
    // No such process.
    return false
  }
}

/** The number of a signal; 9 where the system does not say which it was. */
export function signalNumber(signal: NodeJS.Signals | null): number {
  return signal === null ? 9 : constants.signals[signal]
}
