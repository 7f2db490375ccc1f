import { findCondition, type SandboxClaim } from '@corral/resources'
import type { Ending } from '../task-state/ending.js'

/** Reasons on a claim's Ready condition that no waiting cures. */
export const hopelessReasons: ReadonlySet<string> = new Set([
  'TemplateNotFound',
  'WarmPoolNotFound',
  'InvalidMetadata',
  'EnvVarsInjectionRejected',
  'VolumeClaimTemplatesError',
  'InvalidConfiguration',
])

/** What API servers, kubelets and containerd say of a RuntimeClass that is missing or that no node can give. */
export const runtimeMissing: RegExp = /RuntimeClass "[^"]*" not found|no runtime for "[^"]*" is configured/

export function claimFailed(reason: string, message: string): Ending {
  const code =
    reason === 'WarmPoolNotFound' ? 'PoolNotFound' : reason === 'TemplateNotFound' ? 'TemplateNotFound' : 'ClaimFailed'
  return { code, message: `the sandbox claim was refused (${reason}): ${message}` }
}

export const egressUnsupported: Ending = {
  code: 'EgressUnsupported',
  message: 'the nodes of this cluster do not let a task reach addresses by name',
}

export function notReady(message: string | undefined): Ending {
  return { code: 'SandboxNotReady', message: `no sandbox became ready in time${message ? `: ${message}` : ''}` }
}

export function lost({ claim }: { claim: SandboxClaim | undefined }): Ending {
  const ready = findCondition(claim?.status?.conditions ?? [], 'Ready')
  const detail = ready ? `${ready.reason}: ${ready.message}` : 'its claim is gone'
  const code = /OOMKilled|out of memory/i.test(detail) ? 'OutOfMemory' : 'SandboxLost'
  return { code, message: `the sandbox was lost (${detail})` }
}
