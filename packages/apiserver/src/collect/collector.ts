import type { Clock, Logger } from '@corral/resources'
import type { CollectEvent, CollectStore } from './collect-store.js'

export interface CollectorPorts {
  readonly store: CollectStore
  readonly clock: Clock
  readonly log: Logger
}

/** One housekeeping loop: reads the world once, then follows events. */
export interface Collector {
  load(): void
  observe(event: CollectEvent): void
  /** Settles when everything known so far has been dealt with. */
  idle(): Promise<void>
  /** Settles after the last running piece of work. */
  close(): Promise<void>
}
