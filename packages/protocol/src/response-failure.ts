import { CorralError } from './corral-error.js'
import { type ErrorCode, errorCodes, isErrorCode } from './error-codes.js'
import { OutputFormatError } from './output-frames.js'
import { errorBodySchema } from './task-api.js'

/** A failed answer as an error: the code it carries, or the one its status stands for. Reads at most 64 KiB of it. */
export async function failureOf(response: Response, what: string): Promise<CorralError> {
  const text = await boundedText(response, 64 * 1024).catch(() => '')
  const body = errorBodySchema.safeParse(parseJson(text))
  const details = { status: response.status }
  if (body.success) {
    const { code, message, hint } = body.data.error
    return new CorralError(isErrorCode(code) ? code : codeForStatus(response.status), message, { details, hint })
  }
  return new CorralError(codeForStatus(response.status), `${what} answered ${response.status}`, { details })
}

/** A transport failure as an error: an answer that breaks the contract, the caller's own abort, a timeout, or a lost line. */
export function wrapFailure(cause: unknown, signal: AbortSignal | undefined): CorralError {
  if (cause instanceof CorralError) return cause
  // Asking again would only bring the same nonsense: a sandbox could keep its platform busy with it.
  if (cause instanceof OutputFormatError) return new CorralError('ProtocolViolation', cause.message, { cause })
  if (signal?.aborted) return new CorralError('Aborted', 'the call was aborted', { cause })
  if (cause instanceof Error && cause.name === 'TimeoutError') {
    return new CorralError('Timeout', 'the answer did not come in time', { cause })
  }
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new CorralError('ConnectionLost', `the connection failed: ${reason}`, { cause })
}

/** The body as text; more than `maxBytes` is a `ProtocolViolation`. */
export async function boundedText(response: Response, maxBytes: number): Promise<string> {
  // A reader, because not every browser iterates streams.
  const reader = response.body?.getReader()
  if (!reader) return ''
  const decoder = new TextDecoder()
  let text = ''
  let length = 0
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      length += next.value.length
      if (length > maxBytes) throw new CorralError('ProtocolViolation', `an answer has more than ${maxBytes} bytes`)
      text += decoder.decode(next.value, { stream: true })
    }
  } catch (cause) {
    throw wrapFailure(cause, undefined)
  } finally {
    await reader.cancel().catch(() => undefined)
  }
  return text + decoder.decode()
}

function codeForStatus(status: number): ErrorCode {
  for (const code of Object.keys(errorCodes)) {
    if (isErrorCode(code) && errorCodes[code].httpStatus === status) return code
  }
  return status >= 500 ? 'InternalError' : 'BadRequest'
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: the status alone decides.
    return undefined
  }
}
