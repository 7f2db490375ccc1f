/** The waiting reasons a container can get before it has run. */
export type LaunchErrorCode =
  | 'CreateContainerConfigError'
  | 'CreateContainerError'
  | 'InvalidImageName'
  | 'ErrImagePull'
  | 'ErrImageNeverPull'
  | 'FailedMount'

/** A container that cannot start as its pod describes it. `code` becomes the waiting reason. */
export class LaunchError extends Error {
  override readonly name: string = 'LaunchError'
  constructor(
    readonly code: LaunchErrorCode,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(message, options)
  }
}
