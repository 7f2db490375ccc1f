import { KubeError, type Status } from '@corral/resources'

/** Reasons for answers that carry no Status of their own, such as those of a proxy in between. */
const reasonByStatus: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

/** The error a failed response stands for: code from its Status, else from the HTTP status. */
export function responseError(
  response: { status: number; body: unknown; retryAfterMs?: number },
  action: string,
): KubeError {
  const status = asStatus(response.body)
  const detailsMs = status?.details?.retryAfterSeconds
  const retryAfterMs = response.retryAfterMs ?? (detailsMs === undefined ? undefined : detailsMs * 1000)
  const code =
    status?.reason || reasonByStatus[response.status] || (response.status >= 500 ? 'InternalError' : 'Unknown')
  return new KubeError(code, `${action}: ${status?.message || plainMessage(response)}`, {
    status: response.status,
    ...(status?.message ? { serverMessage: status.message } : {}),
    ...(status?.details ? { details: status.details } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** The error inside a watch's ERROR event. */
export function eventError(object: unknown): KubeError {
  const status = asStatus(object)
  return responseError({ status: status?.code ?? 500, body: object }, 'watch')
}

/** Whether the server no longer has (or does not have yet) the version asked for, so that only a new list helps. */
export function isExpired(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false
  const { code, status, details } = error as KubeError
  if (code === 'Expired' || code === 'Gone' || status === 410) return true
  return details?.causes?.some((cause) => cause.reason === 'ResourceVersionTooLarge') ?? false
}

/** Seconds or a date of a Retry-After header, as milliseconds from now. */
export function parseRetryAfterMs(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined
  const seconds = Number(value)
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime())
}

function asStatus(body: unknown): Status | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  return 'kind' in body && body.kind === 'Status' ? (body as Status) : undefined
}

function plainMessage({ status, body }: { status: number; body: unknown }): string {
  const text = typeof body === 'string' ? body.trim().slice(0, 500) : ''
  return text ? `the server answered ${status}: ${text}` : `the server answered ${status}`
}
