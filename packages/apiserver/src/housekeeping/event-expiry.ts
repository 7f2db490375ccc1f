import type { Event, KubeObject } from '@corral/resources'
import { keyedWorker } from '@corral/runtime'
import type { Housekeeper, HousekeeperPorts } from './housekeeper.js'
import { type ObjectRef, refOf } from './housekeeping-store.js'

const EVENTS = 'events'
const DEFAULT_TTL_MS = 60 * 60 * 1000
/** Between two sweeps, so that an event that cannot be deleted does not keep the loop busy. */
const MIN_PAUSE_MS = 20

/** When an event is no longer of interest: an hour after it was last seen. */
export function expiresAtMs(event: KubeObject, ttlMs: number = DEFAULT_TTL_MS): number {
  // The events collection holds Events; absent times count as the beginning of time.
  const { metadata, lastTimestamp, eventTime, series } = event as Event
  const times = [metadata?.creationTimestamp, lastTimestamp, eventTime, series?.lastObservedTime]
  const seen = times.map((time) => (time ? Date.parse(time) : 0)).filter((time) => !Number.isNaN(time))
  return Math.max(...seen, 0) + ttlMs
}

/** Deletes events an hour after they were last seen. */
export function eventExpiry({ store, clock, log }: HousekeeperPorts, ttlMs: number = DEFAULT_TTL_MS): Housekeeper {
  const expiries = new Map<string, { ref: ObjectRef; atMs: number }>()
  const sweep = async (): Promise<void> => {
    const nowMs = clock.now().getTime()
    const due = [...expiries.values()].filter(({ atMs }) => atMs <= nowMs)
    await Promise.all(due.map(({ ref }) => store.delete(ref)))
    schedule()
  }
  const worker = keyedWorker({ name: 'event-expiry', workers: 1, work: sweep, log })
  let nextAtMs = Number.POSITIVE_INFINITY

  const schedule = (): void => {
    nextAtMs = Number.POSITIVE_INFINITY
    for (const { atMs } of expiries.values()) nextAtMs = Math.min(nextAtMs, atMs)
    if (nextAtMs < Number.POSITIVE_INFINITY) wakeAt(nextAtMs)
  }
  const wakeAt = (atMs: number): void => worker.addAfter('sweep', Math.max(MIN_PAUSE_MS, atMs - clock.now().getTime()))
  const put = (object: KubeObject): void => {
    const ref = refOf(EVENTS, object)
    const atMs = expiresAtMs(object, ttlMs)
    expiries.set(ref.uid, { ref, atMs })
    if (atMs >= nextAtMs) return
    nextAtMs = atMs
    wakeAt(atMs)
  }

  return {
    load() {
      for (const event of store.list(EVENTS)) put(event)
    },
    observe(event) {
      if (event.resource !== EVENTS) return
      if (event.type === 'DELETED') expiries.delete(event.object.metadata?.uid ?? '')
      else put(event.object)
    },
    idle: () => worker.idle(),
    close: () => worker.close(),
  }
}
