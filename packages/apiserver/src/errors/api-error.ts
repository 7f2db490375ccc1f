import type { Status, StatusCause } from '@corral/resources'

/** One rejected field, as it appears in the causes of a 422. */
export interface FieldError {
  reason: string
  field: string
  message: string
}

interface ErrorTarget {
  readonly group: string
  readonly plural: string
  readonly kind: string
}

interface InvalidTarget {
  readonly group: string
  readonly kind: string
  /** The group to name instead of the kind's own. */
  readonly validatedAs?: string
}

/** A refusal with Kubernetes' Status as its body. `code` is the reason, `status.code` the HTTP status. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError'
  readonly code: string
  /** What the caller should know besides. */
  warnings?: readonly string[]
  constructor(readonly status: Status & { code: number; reason: string }) {
    super(status.message)
    this.code = status.reason
  }
}

/** A body that cannot be read as the object it should be. */
export class UndecodableError extends ApiError {}

/** Any refusal; the constructors below cover the usual ones. */
export function apiError(code: number, reason: string, message: string, details?: Status['details']): ApiError {
  return new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details ? { details } : {}),
    code,
  })
}

const resourceName = (target: ErrorTarget): string =>
  target.group ? `${target.plural}.${target.group}` : target.plural

const resourceDetails = (target: ErrorTarget, name: string): NonNullable<Status['details']> => ({
  ...(name ? { name } : {}),
  ...(target.group ? { group: target.group } : {}),
  kind: target.plural,
})

/** 400: the request itself makes no sense. */
export const badRequest = (message: string): ApiError => apiError(400, 'BadRequest', message)

/** 400: the body is not an object of its kind. Of a patch's result the same is said with 422. */
export const undecodable = (message: string): UndecodableError => new UndecodableError(badRequest(message).status)

/** 422: what a patch makes of the object cannot be read. */
export const invalidPatch = (why: string): ApiError =>
  invalid({ group: '', kind: '' }, '', [
    { reason: 'FieldValueInvalid', field: 'patch', message: `Invalid value: ${why}` },
  ])

/** 401: no credentials, or unknown ones. */
export const unauthorized = (): ApiError => apiError(401, 'Unauthorized', 'Unauthorized')

/** 403: understood, but not allowed; `why` ends the sentence. */
export const forbidden = (target: ErrorTarget, name: string, why: string, causes?: StatusCause[]): ApiError =>
  apiError(403, 'Forbidden', `${resourceName(target)} ${JSON.stringify(name)} is forbidden: ${why}`, {
    ...resourceDetails(target, name),
    ...(causes ? { causes } : {}),
  })

/** 404 of an object that does not exist. */
export const notFound = (target: ErrorTarget, name: string): ApiError =>
  apiError(404, 'NotFound', `${resourceName(target)} ${JSON.stringify(name)} not found`, resourceDetails(target, name))

/** 404 of a path or kind that is not served. */
export const unknownPath = (): ApiError =>
  apiError(404, 'NotFound', 'the server could not find the requested resource', {})

/** 405: the path exists, the method does not. */
export const methodNotAllowed = (): ApiError =>
  apiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})

/** 409 of a create whose name is taken. */
export const alreadyExists = (target: ErrorTarget, name: string): ApiError =>
  apiError(
    409,
    'AlreadyExists',
    `${resourceName(target)} ${JSON.stringify(name)} already exists`,
    resourceDetails(target, name),
  )

const STALE = 'the object has been modified; please apply your changes to the latest version and try again'

/** 409 of a write that built on an older state, or whose precondition does not hold. */
export const conflict = (target: ErrorTarget, name: string, why: string = STALE): ApiError =>
  apiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${resourceName(target)} ${JSON.stringify(name)}: ${why}`,
    resourceDetails(target, name),
  )

/** 410: the version asked for is no longer known. */
export const expired = (message: string): ApiError => apiError(410, 'Expired', message)

/** 415: a body we cannot read. */
export const unsupportedMediaType = (accepted: readonly string[]): ApiError =>
  apiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )

/** 422 with one cause per field; the message lists them the way kubectl users know it. */
export function invalid(target: InvalidTarget, name: string, errors: readonly FieldError[]): ApiError {
  const lines = errors.map((error) => `${error.field}: ${error.message}`)
  const text = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
  const group = target.validatedAs ?? target.group
  const kind = group ? `${target.kind}.${group}` : target.kind
  return apiError(422, 'Invalid', `${kind} ${JSON.stringify(name)} is invalid: ${text}`, {
    ...(name ? { name } : {}),
    ...(group ? { group } : {}),
    ...(target.kind ? { kind: target.kind } : {}),
    causes: errors.map(({ reason, message, field }) => ({ reason, message, field })),
  })
}

/** A field that is missing. */
export const required = (field: string, why = ''): FieldError => ({
  reason: 'FieldValueRequired',
  field,
  message: `Required value${why ? `: ${why}` : ''}`,
})

/** A field whose value is wrong. */
export const invalidValue = (field: string, value: unknown, why: string): FieldError => ({
  reason: 'FieldValueInvalid',
  field,
  message: `Invalid value: ${quote(value)}: ${why}`,
})

/** A field that may not be set or changed. */
export const forbiddenField = (field: string, why: string): FieldError => ({
  reason: 'FieldValueForbidden',
  field,
  message: `Forbidden: ${why}`,
})

/** A field whose value is none of those allowed. */
export const notSupported = (field: string, value: unknown, supported: readonly string[]): FieldError => ({
  reason: 'FieldValueNotSupported',
  field,
  message: `Unsupported value: ${quote(value)}: supported values: ${supported.map((item) => JSON.stringify(item)).join(', ')}`,
})

const quote = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'object' ? JSON.stringify(value) : String(value)
