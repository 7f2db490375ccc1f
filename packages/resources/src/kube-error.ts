import type { Status } from './meta.js'

interface KubeErrorOptions {
  status?: number
  serverMessage?: string
  details?: Status['details']
  retryAfterMs?: number
  /** The address of the server, where none was reached there: nothing of the request was sent. */
  server?: string
  cause?: unknown
}

/**
 * A Kubernetes API call that failed. `code` is Kubernetes' own reason (`NotFound`, `AlreadyExists`, `Conflict`,
 * `Expired`, `Invalid`, ...); callers branch on it and never on the class.
 */
export class KubeError extends Error {
  override readonly name: string = 'KubeError'
  constructor(
    readonly code: string,
    message: string,
    readonly options: KubeErrorOptions = {},
  ) {
    super(message, { cause: options.cause })
  }
  /** What the server itself said; `message` also names the call it answered. */
  get serverMessage(): string | undefined {
    return this.options.serverMessage
  }
  get status(): number | undefined {
    return this.options.status
  }
  get details(): Status['details'] {
    return this.options.details
  }
  get retryAfterMs(): number | undefined {
    return this.options.retryAfterMs
  }
  /** The address of a server that could not be reached: nothing of the request was sent. */
  get server(): string | undefined {
    return this.options.server
  }
}

/** The `code` of any error that carries one, else undefined. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

export const isNotFound = (error: unknown): boolean => errorCode(error) === 'NotFound'
export const isConflict = (error: unknown): boolean => errorCode(error) === 'Conflict'
export const isAlreadyExists = (error: unknown): boolean => errorCode(error) === 'AlreadyExists'
