import { SandboxError } from './sandbox-error.js'

/** `Invalid` where a limit in bytes is none: with NaN nothing would ever be too long. Undefined asks for the default. */
export function byteLimit(maxBytes: number | undefined): void {
  if (maxBytes !== undefined && !(typeof maxBytes === 'number' && maxBytes >= 0))
    throw new SandboxError('Invalid', `a limit of ${maxBytes} bytes cannot be: it must be zero or more`)
}
