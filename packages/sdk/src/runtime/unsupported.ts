import { SandboxError } from '../sandbox-error.js'
import type { RuntimeKind } from './sandbox-runtime.js'

/** What a runtime cannot do, by name. */
export function unsupported(kind: RuntimeKind, what: string): SandboxError {
  return new SandboxError('Unsupported', `${what} is not available in this sandbox, which runs "${kind}"`)
}
