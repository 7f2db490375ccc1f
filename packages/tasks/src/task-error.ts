/**
 * An expected failure of a task or of a request about one. `code` is an error code or a task cause of `protocol`;
 * `hint` is the next move.
 */
export class TaskError extends Error {
  override readonly name: string = 'TaskError'
  readonly hint: string | undefined
  readonly details: Readonly<Record<string, unknown>>
  constructor(
    readonly code: string,
    message: string,
    options: { hint?: string; cause?: unknown; details?: Record<string, unknown> } = {},
  ) {
    super(message, { cause: options.cause })
    this.hint = options.hint
    this.details = options.details ?? {}
  }
}

/** `details` of a failure that the same work, done again, would meet again: the command ran, and its end is remembered. */
export const finalFailure: Readonly<Record<string, unknown>> = { isFinal: true }
