/**
 * - `NotFound`, `AlreadyExists`: no image of that name; one that is there.
 * - `InvalidName`: not a name a pod's `image` could have.
 * - `InvalidArchive`: neither an OCI layout nor a root file system, damaged, or a digest that does not match.
 * - `Unsafe`: an entry that leads out of the root.
 * - `TooLarge`: more bytes or files than allowed.
 * - `Unsupported`: another architecture, or a compression this Node does not know.
 */
export type ImageErrorCode =
  | 'NotFound'
  | 'AlreadyExists'
  | 'InvalidName'
  | 'InvalidArchive'
  | 'Unsafe'
  | 'TooLarge'
  | 'Unsupported'

export class ImageError extends Error {
  override readonly name: string = 'ImageError'
  constructor(
    readonly code: ImageErrorCode,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(message, options)
  }
}
