/** A failure the user can act on: printed as one line and a hint, without a stack. */
export class CliError extends Error {
  override readonly name: string = 'CliError'
  readonly hint: string | undefined
  readonly exitCode: number
  constructor(message: string, options: { hint?: string; exitCode?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.hint = options.hint
    this.exitCode = options.exitCode ?? 1
  }
}
