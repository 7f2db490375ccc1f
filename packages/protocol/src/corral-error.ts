import { type ErrorCode, errorCodes } from './error-codes.js'
import type { ErrorBody } from './task-api.js'

/** A failure with a code of the error table. Callers branch on `code`, never on the class. */
export class CorralError extends Error {
  override readonly name: string = 'CorralError'
  readonly details: Readonly<Record<string, unknown>>
  /** The next move. */
  readonly hint: string
  constructor(
    readonly code: ErrorCode,
    message: string,
    options: { cause?: unknown; details?: Record<string, unknown>; hint?: string | undefined } = {},
  ) {
    super(message, { cause: options.cause })
    this.details = options.details ?? {}
    this.hint = options.hint ?? errorCodes[code].hint
  }
  /** Repeating the same call may succeed. */
  get retryable(): boolean {
    return errorCodes[this.code].retryable
  }
}

/** The wire form of an error: its code, what happened, and the table's hint unless a better one is given. */
export function errorBody(code: ErrorCode, message: string, hint: string = errorCodes[code].hint): ErrorBody {
  return { error: { code, message, hint } }
}

/** An HTTP answer that carries the error. */
export function errorResponse(code: ErrorCode, message: string, hint?: string): Response {
  return Response.json(errorBody(code, message, hint), { status: httpStatusOf(code) })
}

/** 499 is a log's number, not one to send. */
function httpStatusOf(code: ErrorCode): number {
  const status = errorCodes[code].httpStatus
  return status === 499 ? 408 : status
}
