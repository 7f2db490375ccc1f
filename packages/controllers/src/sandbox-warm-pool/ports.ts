import type { KubeClient } from '@corral/kube'
import type { Clock } from '@corral/resources'
import type { Expectations } from '@corral/runtime'
import type { CoreState, ExtensionsState } from '../cluster-state.js'
import type { EventRecorder } from '../event-recorder.js'
import type { LaterBehaviour } from '../later-behaviour.js'
import type { PoolLevels } from '../pool-levels.js'

export interface PoolOptions {
  maxBatchSize: number
  replenishDelayMs: number
  maxRefillPerSecond: number
  readinessGraceMs: number
  unschedulableRecheckMs: number
  markEvictable: boolean
  /** What later releases of upstream do; nothing of it without. */
  later?: LaterBehaviour
}

export interface PoolPorts {
  client: KubeClient
  /** The same server for writes that nobody waits for. */
  patient: KubeClient
  /** Says whether the pool is nearly empty, as of now. */
  levels: PoolLevels
  state: CoreState & ExtensionsState
  /** Writes whose events are still to come; fed by the pool's watches. */
  expectations: Expectations
  events: EventRecorder
  clock: Clock
  /** Between 0 and 1; spreads the requeues of many pools. */
  random: () => number
  options: PoolOptions
}
