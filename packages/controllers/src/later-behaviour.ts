/** What releases of upstream after 1.0.3 do otherwise, as far as is known. Nothing of it is on unless asked for. */
export interface LaterBehaviour {
  /** Since 1.0.4: events about a Sandbox's Pod, readiness, suspension and end. */
  readonly sandboxEvents: boolean
  /** Since 1.0.4: what the server refuses for good is `InvalidConfiguration` and not tried again. */
  readonly invalidConfiguration: boolean
  /** Since 1.0.5: counters and latencies of suspending, resuming, finishing, expiring; sizes of pools. */
  readonly lifecycleMetrics: boolean
  /** Since 1.0.7: a pool says that its template is missing. */
  readonly poolWithoutTemplate: boolean
  /** Since 1.0.7: members whose Pods are held back by scheduling gates are not replaced. */
  readonly gatedMembers: boolean
  /** Since 1.0.11: `agent_sandboxes` tells running from suspended. */
  readonly operatingModeLabel: boolean
  /** Since 1.0.11: a Sandbox whose Pod is terminating is not Ready. */
  readonly terminatingPods: boolean
}

/** The release whose behaviour is ours where nothing is said. */
export const defaultRelease = '1.0.3'
const newest = 11

/** How a release behaves; undefined for one that is not known. */
export function behaviourOf(release: string): LaterBehaviour | undefined {
  const patch = Number(/^v?1\.0\.(\d{1,2})$/.exec(release)?.[1] ?? Number.NaN)
  if (!(patch >= 3 && patch <= newest)) return undefined
  return {
    sandboxEvents: patch >= 4,
    invalidConfiguration: patch >= 4,
    lifecycleMetrics: patch >= 5,
    poolWithoutTemplate: patch >= 7,
    gatedMembers: patch >= 7,
    operatingModeLabel: patch >= 11,
    terminatingPods: patch >= 11,
  }
}
