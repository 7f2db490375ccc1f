import type { SandboxTemplate, SandboxWarmPool, Stored } from '@corral/resources'
import type { PoolPorts } from './ports.js'
import type { RefillBuckets, ReplenishHolds } from './refill.js'

/** What is kept between passes, for every pool. */
export interface PoolMemory {
  refill: RefillBuckets
  holds: ReplenishHolds
  /** Those of `settleMs`. */
  settling: ReplenishHolds
  notProgressing: Set<string>
}

/** One look at one pool. */
export interface PoolReconcileContext {
  key: string
  pool: Stored<SandboxWarmPool>
  template: Stored<SandboxTemplate> | undefined
  ports: PoolPorts
  memory: PoolMemory
  signal: AbortSignal
  /** Members asked for and not yet seen, as of the moment the members were listed. */
  arriving: number
  errors: unknown[]
  requeues: number[]
}
