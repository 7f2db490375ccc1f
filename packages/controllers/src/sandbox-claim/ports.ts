import type { KubeClient } from '@corral/kube'
import type { Clock } from '@corral/resources'
import type { Courtesy } from '@corral/runtime'
import type { CoreState, ExtensionsState } from '../cluster-state.js'
import type { EventRecorder } from '../event-recorder.js'
import type { ClaimMetrics } from '../metrics.js'
import type { Tracer } from '../tracing.js'
import type { ObservedTimes } from './observed-times.js'
import type { WarmQueue } from './warm-queue.js'

export interface ClaimPorts {
  client: KubeClient
  state: CoreState & ExtensionsState
  /** Tells others that a claim is being served. */
  courtesy: Courtesy
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
