import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { Container } from '@corral/resources'
import type { CellExit } from '../isolation/isolation.js'
import type { FinishedRun } from '../records/container-state.js'

const longestMessageBytes = 4096
const longestFallbackBytes = 2048
const longestFallbackLines = 80

/** The record of a run from how its cell ended and what it left as its message. */
export function finishedRun(exit: CellExit, attempt: number, message: string): FinishedRun {
  const reason = exit.lost
    ? 'ContainerStatusUnknown'
    : exit.oomKilled
      ? 'OOMKilled'
      : exit.exitCode === 0
        ? 'Completed'
        : 'Error'
  const text = exit.lost ? `${lostMessage}${message ? `: ${message}` : ''}` : message
  return {
    attempt,
    startedAt: exit.startedAt,
    finishedAt: exit.finishedAt,
    exitCode: exit.lost ? 137 : exit.exitCode,
    reason,
    ...(text ? { message: text } : {}),
  }
}

const lostMessage = 'The container could not be located: the process that kept it has ended'

/** A run that left neither a cell nor an exit behind. */
export function lostRun(attempt: number, startedAt: string, now: Date): FinishedRun {
  const finishedAt = now.toISOString()
  return { attempt, startedAt, finishedAt, exitCode: 137, reason: 'ContainerStatusUnknown', message: lostMessage }
}

/**
 * What the container wrote to its termination message file; where that is empty, the run failed and the container asks
 * for it, the end of its log.
 */
export function terminationMessage(
  container: Container,
  exitCode: number,
  messageFile: string,
  logText: () => string,
): string {
  const written = readTail(messageFile, longestMessageBytes, 'head')
  if (written || container.terminationMessagePolicy !== 'FallbackToLogsOnError' || exitCode === 0) return written
  const lines = logText()
    .split('\n')
    .slice(-longestFallbackLines - 1)
  return Buffer.from(lines.join('\n')).subarray(-longestFallbackBytes).toString('utf8')
}

/** Up to `bytes` from one end of a file; empty where there is none. */
export function readTail(file: string, bytes: number, end: 'head' | 'tail'): string {
  let fd: number | undefined
  try {
    fd = openSync(file, 'r')
    const size = fstatSync(fd).size
    const buffer = Buffer.alloc(Math.min(bytes, size))
    const read = readSync(fd, buffer, 0, buffer.length, end === 'head' ? 0 : size - buffer.length)
    return buffer.subarray(0, read).toString('utf8')
  } catch {
    // The container may remove its own message file; that is an empty message.
    return ''
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
