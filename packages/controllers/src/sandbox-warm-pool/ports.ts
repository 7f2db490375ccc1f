import type { EventRecorder, KubeClient } from '@corral/kube'
import type { Clock } from '@corral/ports'
import type { Expectations } from '@corral/runtime'
import type { CoreState, ExtensionsState } from '../shared/cluster-state.js'
import type { PoolLevels } from '../shared/pool-levels.js'
import type { UpstreamRelease } from '../shared/upstream-release.js'

export interface PoolOptions {
  maxBatchSize: number
  replenishDelayMs: number
  /**
   * How long whoever claimed a member has the machine to itself before a replacement starts there. Further claims do not
   * extend it, and a pool that has nothing left does not wait.
   */
  settleMs?: number
  maxRefillPerSecond: number
  readinessGraceMs: number
  unschedulableRecheckMs: number
  markEvictable: boolean
  /** What later releases of upstream do; nothing of it without. */
  upstreamRelease?: UpstreamRelease
}

export interface PoolPorts {
  client: KubeClient
  /** The same server for low-priority writes. */
  lowPriority: KubeClient
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
