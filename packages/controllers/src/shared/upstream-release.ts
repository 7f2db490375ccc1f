/**
 * What releases of upstream after 1.0.3 do otherwise, with the patch number of the 1.0 release that began it. Nothing of it is on
 * unless `--upstream-release` asks for it: the default is the release whose sources can be built and compared with here.
 */
const since = {
  /** Events about a Sandbox's Pod, readiness, suspension and end. */
  sandboxEvents: 4,
  /** What the API server refuses for good is `InvalidConfiguration` and is not tried again. */
  invalidConfiguration: 4,
  /** Counters and latencies of suspending, resuming, finishing and expiring; sizes of pools. */
  lifecycleMetrics: 5,
  /** A pool says that its template is missing. */
  poolWithoutTemplate: 7,
  /** Members whose Pods are held back by scheduling gates are not replaced. */
  gatedMembers: 7,
  /** The metric `agent_sandboxes` tells running from suspended. */
  operatingModeLabel: 11,
  /** A Sandbox whose Pod is terminating is not Ready. */
  terminatingPods: 11,
} as const

/** How one release behaves: which of the later changes it has. */
export type UpstreamRelease = Readonly<Record<keyof typeof since, boolean>>

export const defaultRelease = '1.0.3'
const newestPatch = 11

/** How a release behaves; undefined for one that is not known. */
export function upstreamRelease(release: string): UpstreamRelease | undefined {
  const patch = Number(/^v?1\.0\.(\d{1,2})$/.exec(release)?.[1] ?? Number.NaN)
  if (!(patch >= 3 && patch <= newestPatch)) return undefined
  return Object.fromEntries(Object.entries(since).map(([name, first]) => [name, patch >= first])) as UpstreamRelease
}
