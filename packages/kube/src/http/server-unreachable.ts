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
    throw isUnreachable(error) ? unreachableError(server, action, error) : error
  }
}

function unreachableError({ origin }: URL, action: string, cause: KubeError): KubeError {
  const prefix = `${action}: `
  const reason = cause.message.startsWith(prefix) ? cause.message.slice(prefix.length) : cause.message
  const message = `${prefix}the server ${origin} cannot be reached: ${reason}`
  return new KubeError(cause.code, message, { server: origin, cause })
}

function isUnreachable(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) return false
  for (let cause = error.cause, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if (unreachable.has(errorCode(cause) ?? '')) return true
  }
  return false
}
