import {
  findCondition,
  isConditionTrue,
  type Sandbox,
  type SandboxClaim,
  type SandboxClaimStatus,
  type Stored,
} from '@corral/resources'
import type { ClaimMetrics, LaunchLabels } from '../shared/metrics.js'
import { annotations, labels } from '../shared/names.js'

/** What the annotation gets that keeps latencies from being counted twice. */
export type FirstReady =
  /** Nothing to do. */
  | { kind: 'none' }
  /** Ready for the first time: count, then stamp the time. */
  | { kind: 'count' }
  /** It was Ready before a controller stamped it: say so without a time. */
  | { kind: 'backfill' }

/** A claim's first Ready is counted once, however often it flaps or the controller restarts. */
export function firstReady(
  claim: Stored<SandboxClaim>,
  before: SandboxClaimStatus,
  after: SandboxClaimStatus,
): FirstReady {
  const isStamped = Boolean(claim.metadata.annotations?.[annotations.firstReadyAt])
  const wasReady = isConditionTrue(before.conditions, 'Ready')
  if (isStamped) return { kind: 'none' }
  if (wasReady) return { kind: 'backfill' }
  return isConditionTrue(after.conditions, 'Ready') ? { kind: 'count' } : { kind: 'none' }
}

/** What the annotation gets: the time of a Ready that was counted, no time for one that came before. */
export function firstReadyStamp(kind: 'count' | 'backfill', now: Date): string {
  return kind === 'count' ? now.toISOString() : 'unknown'
}

/** Template and launch type as the claim's metrics label them. */
export function launchLabels(sandbox: Sandbox | undefined): LaunchLabels {
  const launchType = sandbox ? (sandbox.metadata?.labels?.[labels.launchType] === 'warm' ? 'warm' : 'cold') : 'unknown'
  return { launchType, template: sandbox?.metadata?.annotations?.[annotations.templateRef] || '__unknown__' }
}

/** Observes every latency whose starting point is known. */
export function countFirstReady(
  claim: Stored<SandboxClaim>,
  sandbox: Stored<Sandbox> | undefined,
  observedAt: Date,
  metrics: ClaimMetrics,
  now: Date,
): void {
  const launch = launchLabels(sandbox)
  const stamps = claim.metadata.annotations ?? {}
  const since = (stamp: string | undefined): number => (stamp ? now.getTime() - Date.parse(stamp) : Number.NaN)
  const webhookMs = since(stamps[annotations.webhookObservedAt])
  if (webhookMs >= 0) metrics.webhookLatency(webhookMs, launch)
  // The stamp outlives a restart of the controller; without it this process's own memory has to do.
  const controllerMs = since(stamps[annotations.firstObservedAt] ?? observedAt.toISOString())
  if (!Number.isNaN(controllerMs)) metrics.controllerLatency(controllerMs, launch)
  const clientMs = since(stamps[annotations.clientRequestedAt])
  if (clientMs >= 0) metrics.clientLatency(clientMs, launch)
  const ready = findCondition(sandbox?.status?.conditions, 'Ready')
  if (!sandbox || ready?.status !== 'True') return
  const creationMs = Date.parse(ready.lastTransitionTime) - Date.parse(sandbox.metadata.creationTimestamp)
  if (creationMs >= 0) metrics.creationLatency(creationMs, { ...launch, namespace: sandbox.metadata.namespace ?? '' })
}
