import type { EventRecorder, KubeClient } from '@corral/kube'
import type { Clock } from '@corral/ports'
import type { PriorityGate } from '@corral/runtime'
import type { CoreState, ExtensionsState } from '../shared/cluster-state.js'
import type { ClaimMetrics } from '../shared/metrics.js'
import type { Tracer } from '../shared/tracing.js'
import type { ObservedTimes } from './observed-times.js'
import type { WarmQueue } from './warm-queue.js'

export interface ClaimPorts {
  client: KubeClient
  state: CoreState & ExtensionsState
  /** Tells others that a claim is being served. */
  priorities: PriorityGate
  queue: WarmQueue
  observed: ObservedTimes
  events: EventRecorder
  metrics: ClaimMetrics
  tracer: Tracer
  clock: Clock
  options: ClaimOptions
}

export interface ClaimOptions {
  /** Domains under which a claim may put labels on its Pod. */
  labelDomains: readonly string[]
  /** Skip the write that records when a claim was first seen. */
  disableObservabilityAnnotations: boolean
}
