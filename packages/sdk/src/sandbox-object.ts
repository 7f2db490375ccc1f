import type { Sandbox, Stored } from '@corral/resources'
import { SandboxError } from './sandbox-error.js'

export { podNameOf } from '@corral/resources'

/** A sandbox by name, or a handle on one. */
export interface SandboxRef {
  readonly name: string
  readonly namespace?: string | undefined
}

/** As a server may hand it out that checks nothing. */
interface PartialSandbox {
  readonly metadata: Stored<Sandbox>['metadata']
  readonly spec?: Partial<Sandbox['spec']>
}

/** A suspended sandbox has no pod: what asks for it is told why. */
export function requireRunning({ metadata, spec }: Stored<Sandbox> | PartialSandbox): void {
  if (spec?.operatingMode !== 'Suspended') return
  throw new SandboxError('SandboxNotReady', `sandbox "${metadata.name}" is suspended`, { hint: 'Resume it first.' })
}
