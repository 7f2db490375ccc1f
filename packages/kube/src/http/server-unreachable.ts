import { errorCode, KubeError } from '@corral/resources'

/** What Node and undici say where no connection came about. */
const unreachable: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Runs a request; a failure to connect names the server, so that it is told from an answer that was lost. */
export async function namingServer<T>(server: URL, action: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request()
  } catch (error) {
    if (isUnreachable(error)) throw unreachableError(server, action, error)
    throw isUntrusted(error) ? untrustedError(server, action, error) : error
  }
}

function unreachableError({ origin }: URL, action: string, cause: KubeError): KubeError {
  const message = `${action}: the server ${origin} cannot be reached: ${reasonOf(cause, action)}`
  return new KubeError(cause.code, message, { server: origin, cause })
}

const isUntrusted = (error: unknown): error is KubeError =>
  error instanceof KubeError && error.code === 'CertificateInvalid'

function untrustedError({ origin }: URL, action: string, cause: KubeError): KubeError {
  const message = `${action}: the certificate of the server ${origin} is not trusted: ${reasonOf(cause, action)}`
  return new KubeError(cause.code, message, { cause })
}

function reasonOf({ message }: KubeError, action: string): string {
  const prefix = `${action}: `
  return message.startsWith(prefix) ? message.slice(prefix.length) : message
}

function isUnreachable(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false
  for (let cause = error.cause, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if (unreachable.has(errorCode(cause) ?? '')) return true
  }
  return false
}
