import { type Clock, type Logger, silentLogger, systemClock } from '@corral/resources'
import type { CollectStore } from './collect-store.js'
import type { Collector } from './collector.js'
import { crdDeleter } from './crd-deleter.js'
import { eventExpiry } from './event-expiry.js'
import { garbageCollector } from './garbage-collector.js'
import { namespaceDeleter } from './namespace-deleter.js'
import { sliceController } from './slice-controller.js'

export interface CollectorOptions {
  readonly store: CollectStore
  readonly clock?: Clock
  readonly log?: Logger
  readonly eventTtlMs?: number
}

/** The running housekeeping of a server. */
export interface Collectors {
  /** Settles when all of them rest. Work that follows from their own writes is waited for as well. */
  idle(): Promise<void>
  /** Stops listening; settles after the last running piece of work. */
  close(): Promise<void>
}

/** Starts garbage collection, namespace and CRD deletion, event expiry and EndpointSlices on one store. */
export function startCollectors(options: CollectorOptions): Collectors {
  const { store, clock = systemClock, log = silentLogger } = options
  const ports = { store, clock, log }
  const collectors: Collector[] = [
    garbageCollector(ports),
    namespaceDeleter(ports),
    crdDeleter(ports),
    eventExpiry(ports, options.eventTtlMs),
    sliceController(ports),
  ]
  const unsubscribe = store.watch((event) => {
    for (const collector of collectors) collector.observe(event)
  })
  for (const collector of collectors) collector.load()
  return {
    async idle() {
      // Twice, since one collector's writes are another's events.
      for (let pass = 0; pass < 2; pass++) await Promise.all(collectors.map((collector) => collector.idle()))
    },
    async close() {
      unsubscribe()
      await Promise.all(collectors.map((collector) => collector.close()))
    },
  }
}
