import type { ProcessExitRecord } from '@corral/protocol'

/**
 * A shell's exit status as an exit record. A shell reports a child ended by signal n as 128 + n and cannot tell it from a
 * child that exits with that number; the signal is what it nearly always is.
 */
export function exitRecord(status: number, time: Date): ProcessExitRecord {
  const base = { exit_code: status, time: time.toISOString() }
  return status > 128 && status <= 192 ? { ...base, signal: status - 128 } : base
}

/** The record of a process whose end was not seen. */
export function lostRecord(message: string, time: Date): ProcessExitRecord {
  return { exit_code: -1, message, time: time.toISOString() }
}

/** The status in a wrapper's `exit` file, or undefined when the file does not hold one. */
export function parseExitStatus(text: string): number | undefined {
  const match = /^(\d{1,3})\n$/.exec(text)
  const status = match ? Number(match[1]) : Number.NaN
  return status >= 0 && status <= 255 ? status : undefined
}
