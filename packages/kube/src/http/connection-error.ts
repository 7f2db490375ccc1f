import { errorCode, KubeError } from '@corral/resources'

const timeouts = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])
const certificate = /CERT|SELF_SIGNED|UNABLE_TO_|^ERR_TLS_|^ERR_SSL_|^ERR_OSSL_/

const misuse = /^(UND_ERR_INVALID_|ERR_INVALID_|ERR_HTTP_INVALID_|ERR_HTTP2_INVALID_|ERR_HTTP2_HEADER_)/
const programming = [TypeError, RangeError, ReferenceError, SyntaxError]

/** A mistake in the program, not in the network: a header that cannot be sent, a property of undefined. */
function isProgramming(error: unknown, code: string): boolean {
  return misuse.test(code) || (code === '' && programming.some((kind) => error instanceof kind))
}

/** A failure below HTTP as a `KubeError`: `Timeout`, `CertificateInvalid` or `ConnectionLost`. Others pass unchanged. */
export function connectionError(error: unknown, action: string): unknown {
  if (error instanceof KubeError) return error
  const code = errorCode(error) ?? ''
  if (isProgramming(error, code)) return error
  const message = error instanceof Error ? error.message || code : String(error)
  if (timeouts.has(code)) return new KubeError('Timeout', `${action}: ${message}`, { cause: error })
  if (certificate.test(code)) return new KubeError('CertificateInvalid', `${action}: ${message}`, { cause: error })
  return new KubeError('ConnectionLost', `${action}: ${message}`, { cause: error })
}
