/**
 * - `NotFound`, `AlreadyExists`: no image of that name; one that is there.
 * - `InvalidName`: not a name a pod's `image` could have.
 * - `InvalidArchive`: neither an OCI layout nor a root file system, damaged, or a digest that does not match.
 * - `Unsafe`: an entry that leads out of the root.
 * - `TooLarge`: more bytes or files than allowed.
 * - `Unsupported`: another architecture, a compression this Node does not know, or sparse files.
 * - `DiskFull`: no room for it; nothing is left of it.
 */
export type ImageErrorCode =
  | 'NotFound'
  | 'AlreadyExists'
  | 'InvalidName'
  | 'InvalidArchive'
  | 'Unsafe'
  | 'TooLarge'
  | 'Unsupported'
  | 'DiskFull'

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
