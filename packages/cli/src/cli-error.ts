import type { CorralError } from '@corral/protocol'

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

/** A failure of the task API or of a sandbox as this command line reports it: 3 for trouble of the platform, 2 for a refusal. */
export function cliErrorOf(error: CorralError): CliError {
  const { code, details } = error
  const status = typeof details.status === 'number' ? details.status : undefined
  const isTrouble = code === 'ConnectionLost' || code === 'Timeout' || (status !== undefined && status >= 500)
  return new CliError(code === 'ConnectionLost' ? error.message : `${error.message} (${code})`, {
    hint: details.platform === undefined ? error.hint : platformHint,
    exitCode: isTrouble ? 3 : status === undefined ? 1 : 2,
    cause: error,
  })
}

const platformHint = 'Start it with `corral up`, or point CORRAL_URL and CORRAL_TOKEN at a running one.'
