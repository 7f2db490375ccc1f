import { type Clock, type Logger, silentLogger, systemClock } from '@corral/ports'
import { crdDeleter } from './crd-deleter.js'
import { eventExpiry } from './event-expiry.js'
import { garbageCollector } from './garbage-collector.js'
import type { Housekeeper } from './housekeeper.js'
import type { HousekeepingStore } from './housekeeping-store.js'
import { namespaceDeleter } from './namespace-deleter.js'
import { sliceController } from './slice-controller.js'

export interface HousekeepingOptions {
  readonly store: HousekeepingStore
  readonly clock?: Clock
  readonly log?: Logger
  readonly eventTtlMs?: number
}

/** The running housekeeping of a server. */
export interface Housekeeping {
  /** Settles when all of them rest. Work that follows from their own writes is waited for as well. */
  idle(): Promise<void>
  /** Stops listening; settles after the last running piece of work. */
  close(): Promise<void>
}

/** Starts garbage collection, namespace and CRD deletion, event expiry and EndpointSlices on one store. */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { store, clock = systemClock, log = silentLogger } = options
  const ports = { store, clock, log }
  const housekeepers: Housekeeper[] = [
    garbageCollector(ports),
    namespaceDeleter(ports),
    crdDeleter(ports),
    eventExpiry(ports, options.eventTtlMs),
    sliceController(ports),
  ]
  const unsubscribe = store.watch((event) => {
    for (const housekeeper of housekeepers) housekeeper.observe(event)
  })
  for (const housekeeper of housekeepers) housekeeper.load()
  return {
    async idle() {
      // Twice, since one housekeeper's writes are another's events.
      for (let pass = 0; pass < 2; pass++) await Promise.all(housekeepers.map((housekeeper) => housekeeper.idle()))
    },
    async close() {
      unsubscribe()
      await Promise.all(housekeepers.map((housekeeper) => housekeeper.close()))
    },
  }
}
