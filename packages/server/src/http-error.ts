import { errorCodeEntry, errorCodes, isErrorCode } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import { HTTPException } from 'hono/http-exception'

export interface HttpError {
  status: number
  body: { error: { code: string; message: string; hint?: string } }
}

/**
 * Any failure as an answer: what the framework or a service refused with its code, status and hint, everything else as
 * an internal error without details. A mistake of the client is always a 4xx.
 */
export function httpError(error: unknown): HttpError {
  if (error instanceof HTTPException) return refusedByFramework(error)
  const code = errorCode(error)
  const kubeStatus = (error as { status?: unknown } | undefined)?.status
  const status = typeof kubeStatus === 'number' && kubeStatus >= 400 && kubeStatus < 600 ? kubeStatus : undefined
  // A code of the operating system, such as ENOENT, is none of ours: its message is for the log.
  if (!code || !(error instanceof Error) || (!isErrorCode(code) && status === undefined))
    return describe('InternalError', 'the request failed inside the platform')
  return describe(code, error.message, status, (error as { hint?: string }).hint)
}

export function describe(code: string, message: string, status?: number, hint?: string): HttpError {
  const entry = errorCodeEntry(code)
  return { status: status ?? entry.httpStatus, body: { error: { code, message, hint: hint ?? entry.hint } } }
}

function refusedByFramework({ status, message }: HTTPException): HttpError {
  if (/malformed json/i.test(message)) return describe('BadRequest', 'the body is not valid JSON', status)
  return describe(codeOf(status), message || 'the request was refused', status)
}

function codeOf(status: number): string {
  const row = Object.entries(errorCodes).find(([, entry]) => entry.httpStatus === status)
  return row?.[0] ?? (status < 500 ? 'BadRequest' : 'InternalError')
}
