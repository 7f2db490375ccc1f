import { SandboxError, toSandboxError } from '../sandbox-error.js'

/** A command that ended with another exit code than 0. */
export class CommandExitError extends SandboxError {
  override readonly name: string = 'CommandExitError'
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string

  constructor(result: { exitCode: number; stdout: string; stderr: string }) {
    const said = result.stderr.trim().slice(-2000)
    super('CommandFailed', `the command ended with ${result.exitCode}${said ? `: ${said}` : ''}`)
    this.exitCode = result.exitCode
    this.stdout = result.stdout
    this.stderr = result.stderr
  }
}

export class NotFoundError extends SandboxError {
  override readonly name: string = 'NotFoundError'
}

export class TimeoutError extends SandboxError {
  override readonly name: string = 'TimeoutError'
}

export class InvalidArgumentError extends SandboxError {
  override readonly name: string = 'InvalidArgumentError'
}

export class AuthenticationError extends SandboxError {
  override readonly name: string = 'AuthenticationError'
}

export class NotEnoughSpaceError extends SandboxError {
  override readonly name: string = 'NotEnoughSpaceError'
}

export class RateLimitError extends SandboxError {
  override readonly name: string = 'RateLimitError'
}

/** For programs that catch it; what is wrong with a template is told by the cluster's own code. */
export class TemplateError extends SandboxError {
  override readonly name: string = 'TemplateError'
}

const classes = {
  NotFound: NotFoundError,
  SandboxDeleted: NotFoundError,
  Timeout: TimeoutError,
  Invalid: InvalidArgumentError,
  BadRequest: InvalidArgumentError,
  IsADirectory: InvalidArgumentError,
  NotADirectory: InvalidArgumentError,
  WorkingDirectoryMissing: InvalidArgumentError,
  Unauthorized: AuthenticationError,
  DiskFull: NotEnoughSpaceError,
  TooManyRequests: RateLimitError,
} as const

/** Runs a call and throws the classes that code written for E2B catches; `code` stays ours. */
export async function asE2b<T>(call: () => PromiseLike<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof CommandExitError) throw error
    const failure = toSandboxError(error)
    const Class = classes[failure.code as keyof typeof classes]
    if (!Class) throw failure
    throw new Class(failure.code, failure.message, { cause: failure, details: failure.details, hint: failure.hint })
  }
}
