import { errorCodeEntry } from '@corral/protocol'
import { errorCode } from '@corral/resources'

export interface HttpError {
  status: number
  body: { error: { code: string; message: string; hint?: string } }
}

/** Any failure as an answer: known codes with their status and hint, everything else as an internal error without details. */
export function httpError(error: unknown): HttpError {
  const code = errorCode(error)
  if (!code || !(error instanceof Error)) return describe('InternalError', 'the request failed inside the platform')
  const kubeStatus = (error as { status?: unknown }).status
  const entry = errorCodeEntry(code)
  const status = typeof kubeStatus === 'number' && kubeStatus >= 400 ? kubeStatus : entry.httpStatus
  return describe(code, error.message, status, (error as { hint?: string }).hint)
}

export function describe(code: string, message: string, status?: number, hint?: string): HttpError {
  const entry = errorCodeEntry(code)
  return { status: status ?? entry.httpStatus, body: { error: { code, message, hint: hint ?? entry.hint } } }
}
