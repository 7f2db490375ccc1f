import type { Logger } from '@corral/ports'
import { CorralError, type ErrorCode, errorResponse } from '@corral/protocol'

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
  if (known) return errorResponse(known.code, known.message)
  log.error('request failed', { error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  return errorResponse('InternalError', 'the daemon failed to serve the request')
}

function asCorralError(error: unknown): CorralError | undefined {
  if (error instanceof CorralError) return error
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  const code = errnoCodes[error.code]
  return code ? new CorralError(code, error.message, { cause: error }) : undefined
}
