/**
 * `GoMissing`: nothing can be built. `BuildFailed`: the Go tool said no. `NodeMissing`: no container runtime to be had.
 * `StartFailed`: a program ended or never got ready.
 */
export type OracleErrorCode = 'GoMissing' | 'BuildFailed' | 'NodeMissing' | 'StartFailed'

/** Why the judge is not available; `message` is one line for the person who asked for it. */
export class OracleError extends Error {
  override readonly name: string = 'OracleError'
  constructor(
    readonly code: OracleErrorCode,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(message, options)
  }
}
