import type { ProcessExit } from '@corral/ports'
import type { Status } from '@corral/resources'

/** Exit code reported when no process ran to tell one. */
const unknownExit = 255

/** What the status frame at the end of exec or attach says about the process. */
export function exitFromStatus(text: string): ProcessExit {
  let status: Partial<Status>
  try {
    status = JSON.parse(text)
  } catch {
    return { exitCode: unknownExit, message: text } // the first protocol versions send plain words
  }
  if (status.status === 'Success') return { exitCode: 0 }
  const cause = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')
  const exitCode = cause ? Number(cause.message) : Number.NaN
  if (status.reason !== 'NonZeroExitCode' || !Number.isInteger(exitCode)) {
    const message = status.message ?? 'the process failed'
    return { exitCode: Number.isInteger(exitCode) ? exitCode : unknownExit, message }
  }
  return exitCode > 128 && exitCode < 160 ? { exitCode, signal: exitCode - 128 } : { exitCode }
}

/** The exit of a process we lost sight of. */
export function lostExit(message: string): ProcessExit {
  return { exitCode: unknownExit, message }
}
