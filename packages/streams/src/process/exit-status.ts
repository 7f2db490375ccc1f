import type { ProcessExit } from '@corral/ports'
import type { Status } from '@corral/resources'

/** The part of a Status that ends exec and attach. */
export interface StreamStatus {
  metadata: Record<string, never>
  status: 'Success' | 'Failure'
  message?: string
  reason?: string
  details?: NonNullable<Status['details']>
  code?: number
}

/** What clients are told when the process has ended. */
export function exitStatus(exit: ProcessExit): StreamStatus {
  if (exit.message !== undefined) return failureStatus(exit.message, exit.exitCode)
  if (exit.exitCode === 0) return { metadata: {}, status: 'Success' }
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${exit.exitCode}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(exit.exitCode) }] },
  }
}

/** What clients are told when no process could be started, or the sandbox under it was lost: words for a person. */
export function failureStatus(message: string, exitCode?: number): StreamStatus {
  const causes = [{ message }, ...(exitCode === undefined ? [] : [{ reason: 'ExitCode', message: String(exitCode) }])]
  return { metadata: {}, status: 'Failure', message, reason: 'InternalError', details: { causes }, code: 500 }
}
