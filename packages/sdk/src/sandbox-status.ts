import type { Condition, Sandbox, Stored } from '@corral/resources'

export type SandboxPhase =
  | 'Pending'
  | 'Running'
  | 'Suspending'
  | 'Suspended'
  | 'Resuming'
  | 'Finished'
  | 'Failed'
  | 'Deleting'

/** Where a sandbox stands, and why. */
export interface SandboxStatusView {
  readonly phase: SandboxPhase
  readonly isReady: boolean
  /** The condition behind the phase; empty while the controller has said nothing. */
  readonly reason: string
  readonly message: string
  readonly podName: string
  readonly podIPs: readonly string[]
  readonly nodeName: string | undefined
  readonly serviceFQDN: string | undefined
  readonly operatingMode: 'Running' | 'Suspended'
  /** When the cluster ends it by itself. */
  readonly shutdownTime: Date | undefined
  readonly conditions: readonly Condition[]
}

/** What the object says. Pure. */
export function statusOf(sandbox: Stored<Sandbox>, podName: string): SandboxStatusView {
  const conditions = sandbox.status?.conditions ?? []
  const of = (type: string) => conditions.find((condition) => condition.type === type)
  const [ready, finished, suspended] = [of('Ready'), of('Finished'), of('Suspended')]
  const operatingMode = sandbox.spec.operatingMode === 'Suspended' ? 'Suspended' : 'Running'
  // Conditions written for an earlier spec say nothing about the present one.
  const isCurrent = (ready?.observedGeneration ?? 0) >= (sandbox.metadata.generation ?? 0)
  const phase: SandboxPhase = sandbox.metadata.deletionTimestamp
    ? 'Deleting'
    : finished?.status === 'True'
      ? finished.reason === 'PodFailed'
        ? 'Failed'
        : 'Finished'
      : operatingMode === 'Suspended'
        ? suspended?.status === 'True'
          ? 'Suspended'
          : 'Suspending'
        : ready?.status === 'True' && isCurrent
          ? 'Running'
          : ready?.reason === 'SandboxSuspended' || suspended?.status === 'True'
            ? 'Resuming'
            : ready && failedReasons.has(ready.reason)
              ? 'Failed'
              : 'Pending'
  const cause = phase === 'Finished' || phase === 'Failed' ? (finished ?? ready) : ready
  return {
    phase,
    isReady: phase === 'Running',
    reason: cause?.reason ?? '',
    message: cause?.message ?? '',
    podName,
    podIPs: sandbox.status?.podIPs ?? [],
    nodeName: sandbox.status?.nodeName,
    serviceFQDN: sandbox.status?.serviceFQDN,
    operatingMode,
    shutdownTime: sandbox.spec.shutdownTime ? new Date(sandbox.spec.shutdownTime) : undefined,
    conditions,
  }
}

const failedReasons = new Set(['SandboxExpired', 'InvalidConfiguration', 'PodFailed'])
