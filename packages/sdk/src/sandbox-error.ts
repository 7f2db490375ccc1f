import { CorralError, type ErrorCode, isErrorCode, UnsentError } from '@corral/protocol'
import { errorCode } from '@corral/resources'

/** Every failure of the SDK. Callers branch on `code`; `cause` is what lies beneath. */
export class SandboxError extends CorralError {
  override readonly name: string = 'SandboxError'
}

/** Any failure as a `SandboxError`: codes of the cluster and of the daemon are kept where the table knows them. */
export function toSandboxError(error: unknown, signal?: AbortSignal): SandboxError {
  if (error instanceof SandboxError) return error
  if (signal?.aborted) return new SandboxError('Aborted', 'the call was aborted', { cause: error })
  const message = error instanceof Error ? error.message : String(error)
  const code = knownCode(errorCode(error))
  const server = unreachedServer(error)
  // The table speaks of a sandbox; a call to the API server says nothing of it.
  const isOfServer = code === 'ConnectionLost' && error instanceof Error && error.name === 'KubeError'
  const hint = isOfServer ? unreachableHint : errorCode(error) === 'ENOENT' ? 'Check the path.' : undefined
  return new SandboxError(code, message, {
    cause: error,
    ...(server === undefined ? {} : { details: { server } }),
    hint,
  })
}

const unreachableHint = 'Check that the server runs and can be reached from here, then try again.'

/** The address of a server that nothing could be sent to. */
export function unreachedServer(error: unknown): string | undefined {
  return error instanceof Error && 'server' in error && typeof error.server === 'string' ? error.server : undefined
}

/** No connection to the server came about: what was to go over it was not sent. */
export function unreachable(server: string | undefined, cause: Error): SandboxError {
  const known = unreachedServer(cause) ?? server
  const isNamed = known === undefined || cause.message.includes(known)
  const message = isNamed ? cause.message : `${known} cannot be reached: ${cause.message}`
  const found = knownCode(errorCode(cause))
  const code = found === 'ServiceUnavailable' || found === 'CertificateInvalid' ? found : 'ConnectionLost'
  return new SandboxError(code, message, {
    cause: new UnsentError(message, { cause }),
    ...(code === 'ConnectionLost' ? { hint: unreachableHint } : {}),
    ...(known === undefined ? {} : { details: { server: known } }),
  })
}

/** Of files on this machine, which uploads and downloads read and write. */
const fileCodes: Readonly<Record<string, ErrorCode>> = {
  ENOENT: 'NotFound',
  EACCES: 'PermissionDenied',
  EPERM: 'PermissionDenied',
  EROFS: 'PermissionDenied',
  EEXIST: 'AlreadyExists',
  ENOTDIR: 'NotADirectory',
  EISDIR: 'IsADirectory',
  ENOSPC: 'DiskFull',
  EADDRINUSE: 'Conflict',
}

/** What Node says of TLS. */
const certificate = /CERT|SELF_SIGNED|UNABLE_TO_|^ERR_TLS_|^ERR_SSL_/

function knownCode(code: string | undefined): ErrorCode {
  if (code === undefined) return 'InternalError'
  if (code === 'KubeConfigNotFound') return 'KubeConfigInvalid'
  if (isErrorCode(code)) return code
  const ofFiles = fileCodes[code]
  if (ofFiles) return ofFiles
  // A tunnel that led nowhere: what it was for is in the message.
  if (code === 'PortForwardFailed') return 'ConnectionLost'
  if (certificate.test(code)) return 'CertificateInvalid'
  // What Node cannot send as it was given, and what it cannot read as HTTP.
  if (/^ERR_(INVALID|UNESCAPED)_/.test(code)) return 'Invalid'
  if (code.startsWith('HPE_')) return 'ProtocolViolation'
  // Socket errors of Node: the cluster cannot be reached.
  return /^(E[A-Z]+|UND_ERR_.*)$/.test(code) ? 'ConnectionLost' : 'InternalError'
}

/** Runs a call and throws nothing but `SandboxError`. */
export async function translated<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw toSandboxError(error, signal)
  }
}

/** The same for a stream of values. */
export async function* translatedStream<T>(values: () => AsyncIterable<T>, signal?: AbortSignal): AsyncIterable<T> {
  try {
    yield* values()
  } catch (error) {
    throw toSandboxError(error, signal)
  }
}
