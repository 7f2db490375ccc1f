import type { EventRecorder, KubeClient } from '@corral/kube'
import type { Clock } from '@corral/ports'
import type { CoreState } from '../shared/cluster-state.js'
import type { LifecycleMetrics } from '../shared/lifecycle-metrics.js'
import type { Tracer } from '../shared/tracing.js'
import type { UpstreamRelease } from '../shared/upstream-release.js'
import type { PodWarnings } from './pod-warnings.js'

export interface SandboxPorts {
  client: KubeClient
  state: CoreState
  events: EventRecorder
  tracer: Tracer
  clock: Clock
  options: SandboxOptions
  /** What the cluster complains about Pods, where Ready=False is to explain itself. */
  warnings?: Pick<PodWarnings, 'latest'> | undefined
  /** Counts what becomes of Sandboxes; without it nothing is counted. */
  lifecycle?: LifecycleMetrics | undefined
}

export interface SandboxOptions {
  clusterDomain: string
  /** How long a metadata-only Pod patch may wait to be written together with others; 0 writes at once. */
  writeBehindWindowMs: number
  /** Let Ready=False say why the Pod is not up. */
  explainNotReady: boolean
  /** What later releases of upstream do; nothing of it without. */
  upstreamRelease?: UpstreamRelease
}
