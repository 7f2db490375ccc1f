/** An object that cannot be expressed in the version asked for. */
export class ConversionError extends Error {
  override readonly name: string = 'ConversionError'
  readonly code = 'InternalError'
}
