import type { KubeError } from '@corral/resources'

/** What a condition says about a failure: the server's words, without the request that the client puts before them. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return (error as Partial<KubeError>).serverMessage ?? error.message
}

/** Several failures in one message, one per line. */
export function joinErrors(texts: readonly string[]): string {
  return texts.join('\n')
}

/** One error out of several; a single one is passed on as it is. */
export function combineErrors(errors: readonly unknown[]): unknown {
  return errors.length === 1 ? errors[0] : new AggregateError(errors, joinErrors(errors.map(errorText)))
}

/** The same failure with words in front. Code, status and cause stay reachable through `cause`. */
export class StepError extends Error {
  override readonly name: string = 'StepError'
  readonly code: string | undefined
  constructor(prefix: string, cause: unknown) {
    super(`${prefix}: ${errorText(cause)}`, { cause })
    this.code = (cause as Partial<KubeError> | undefined)?.code
  }
}

/** Somewhere in the failure the server says that the namespace is going away: nothing can be created in it any more. */
export function isNamespaceTerminating(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isNamespaceTerminating)
  if (!(error instanceof Error)) return false
  const { details } = error as Partial<KubeError>
  if (details?.causes?.some((cause) => cause.reason === 'NamespaceTerminating')) return true
  return isNamespaceTerminating(error.cause)
}
