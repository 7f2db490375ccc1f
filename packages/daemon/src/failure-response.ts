import { basename, dirname } from 'node:path'
import type { Logger } from '@corral/ports'
import { CorralError, type ErrorCode, errorResponse } from '@corral/protocol'
import { isTemporaryName } from './temporary-name.js'

const errnoCodes: Readonly<Record<string, ErrorCode>> = {
  ENOENT: 'NotFound',
  EACCES: 'PermissionDenied',
  EPERM: 'PermissionDenied',
  EROFS: 'PermissionDenied',
  EISDIR: 'IsADirectory',
  ENOTDIR: 'NotADirectory',
  ENOTEMPTY: 'DirectoryNotEmpty',
  EEXIST: 'AlreadyExists',
  ENOSPC: 'DiskFull',
  EDQUOT: 'DiskFull',
  ENAMETOOLONG: 'Invalid',
  ELOOP: 'Invalid',
  EINVAL: 'Invalid',
  ETXTBSY: 'Conflict',
  EBUSY: 'Conflict',
}

/** Any failure of a request as its typed answer. Only unforeseen failures are logged. */
export function failureResponse(error: unknown, log: Logger): Response {
  const known = asCorralError(error)
  if (known) return errorResponse(known.code, known.message, known.hint)
  log.error('request failed', { error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  return errorResponse('InternalError', 'the daemon failed to serve the request')
}

function asCorralError(error: unknown): CorralError | undefined {
  if (error instanceof CorralError) return error
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  const code = errnoCodes[error.code]
  if (!code) return undefined
  const hint = code === 'NotFound' ? 'Check the path.' : undefined
  return new CorralError(code, wordsOf(error), { cause: error, hint })
}

/** The path and what is wrong with it, instead of the system call that failed. */
function wordsOf(error: Error & { path?: unknown; dest?: unknown }): string {
  const { message, path, dest } = error
  const reason = /^[A-Z0-9]+: ([^,]+)/.exec(message)?.[1]
  if (reason === undefined || typeof path !== 'string') return message
  const to = typeof dest === 'string' ? dest : undefined
  // What is written lies beside its place first.
  if (isTemporaryName(basename(path))) return `"${to ?? dirname(path)}": ${reason}`
  return `"${path}"${to === undefined ? '' : ` to "${to}"`}: ${reason}`
}
