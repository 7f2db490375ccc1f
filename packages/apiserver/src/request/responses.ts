import type { ApiResponse } from '@corral/ports'
import { errorCode, type KubeError, type Status } from '@corral/resources'
import { type ApiError, apiError } from '../errors/api-error.js'
import { jsonText } from '../objects/json-text.js'

const HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' } as const

/** Headers of a JSON answer, with one Warning per text. */
export function jsonHeaders(warnings: readonly string[] = [], contentType?: string): Record<string, string> {
  if (warnings.length === 0 && contentType === undefined) return HEADERS
  return {
    ...HEADERS,
    ...(contentType === undefined ? {} : { 'content-type': contentType }),
    ...(warnings.length === 0 ? {} : { warning: warnings.map(warningValue).join(', ') }),
  }
}

/** Quoted, without control characters, and as the bytes of its UTF-8: Node refuses any other character in a header. */
function warningValue(text: string): string {
  const quoted = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')
  const printable = quoted.replaceAll(/\p{Cc}+/gu, ' ')
  return `299 - "${Buffer.from(printable, 'utf8').toString('latin1')}"`
}

/** An answer with a frozen object; its JSON is made when a socket asks for it, and once. */
export function objectResponse(status: number, value: object, warnings?: readonly string[]): ApiResponse {
  return { status, headers: jsonHeaders(warnings), body: { type: 'object', value, json: () => jsonText(value) } }
}

/** An answer in plain text. */
export function textResponse(status: number, text: string): ApiResponse {
  return {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-cache, private' },
    body: { type: 'bytes', bytes: Buffer.from(text) },
  }
}

/** The Status of something that worked and has no object to show. */
export function successStatus(details?: Status['details'], code?: number): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    ...(details ? { details } : {}),
    ...(code ? { code } : {}),
  }
}

/** The Status body of any failure. What is not an `ApiError` is a defect here: 500, without its insides. */
export function errorResponse(error: unknown): ApiResponse {
  const status = errorStatus(error)
  const response = objectResponse(status.code, status, isApiError(error) ? error.warnings : undefined)
  const retryAfter = status.details?.retryAfterSeconds
  if (retryAfter === undefined) return response
  return { ...response, headers: { ...response.headers, 'retry-after': String(retryAfter) } }
}

const STATUS_OF_REASON: Readonly<Record<string, number>> = {
  BadRequest: 400,
  Forbidden: 403,
  NotFound: 404,
  Conflict: 409,
  Invalid: 422,
  TooManyRequests: 429,
  ServiceUnavailable: 503,
  Timeout: 504,
}

/** What is said about any failure, without how it is sent. */
export function errorStatus(error: unknown): ApiError['status'] {
  if (isApiError(error)) return error.status
  // Pure parts throw the client's error type; it says the same in other words.
  if (error instanceof Error && error.name === 'KubeError') {
    const { code, message, status, details } = error as KubeError
    if (status !== undefined) return apiError(status, code, message, details).status
  }
  // Reads go on while the disk is full, and a write may be stored once something made room.
  if (errorCode(error) === 'DiskFull')
    return apiError(507, 'DiskFull', messageOf(error), { retryAfterSeconds: 1 }).status
  // Others say with a `code` what they mean: selectors, nodes that serve streams.
  const httpStatus = STATUS_OF_REASON[errorCode(error) ?? '']
  if (httpStatus !== undefined) return apiError(httpStatus, errorCode(error)!, messageOf(error)).status
  // An object of thousands of levels is the caller's: reading it goes down a level with each of them.
  if (error instanceof RangeError && error.message.startsWith('Maximum call stack'))
    return apiError(400, 'BadRequest', 'the object is nested too deeply').status
  return apiError(500, 'InternalError', `Internal error occurred: ${messageOf(error)}`).status
}

/** Whether the error is a refusal of ours, whichever copy of the class made it. */
export const isApiError = (error: unknown): error is ApiError => error instanceof Error && error.name === 'ApiError'

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
