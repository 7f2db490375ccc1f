import type { Clock, Logger } from '@corral/ports'
import type { HousekeepingStore, ObjectEvent } from './housekeeping-store.js'

export interface HousekeeperPorts {
  readonly store: HousekeepingStore
  readonly clock: Clock
  readonly log: Logger
}

/** One housekeeping loop: reads the world once, then follows events. */
export interface Housekeeper {
  load(): void
  observe(event: ObjectEvent): void
  /** Settles when everything known so far has been dealt with. */
  idle(): Promise<void>
  /** Settles after the last running piece of work. */
  close(): Promise<void>
}
