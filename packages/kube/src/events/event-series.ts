import type { Clock } from '@corral/ports'
import type { EventsV1Event } from '@corral/resources'

/** A repeated event is counted on the first one; this long after the last repeat the count is final. */
const finishMs = 6 * 60_000
/** A series that does not end is written down this often. */
const refreshMs = 30 * 60_000
/** More different events than this at a time and the oldest are no longer counted on. */
const maxKnown = 4_096

export type SeriesWrite =
  | { kind: 'create'; event: EventsV1Event }
  | { kind: 'count'; event: EventsV1Event; series: NonNullable<EventsV1Event['series']> }

interface Known {
  event: EventsV1Event
  count: number
  lastMs: number
  /** What the server knows. */
  writtenCount: number
  writtenMs: number
}

/**
 * Turns repeats of an event into a series, as client-go's recorder does: the first is created, the second makes it a
 * series of two, further ones are only counted until the series ends or has gone on for long. The same event is the same
 * news about the same version of the same object.
 */
export class EventSeries {
  /** In the order of the last repeat. */
  readonly #known = new Map<string, Known>()

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  /** What to write for an event that has just happened, together with series that are over by now. */
  record(event: EventsV1Event): SeriesWrite[] {
    const nowMs = this.clock.now().getTime()
    const writes = this.#finish((known) => known.lastMs + finishMs < nowMs)
    const key = keyOf(event)
    const known = this.#known.get(key)
    if (!known) {
      this.#known.set(key, { event, count: 1, lastMs: nowMs, writtenCount: 1, writtenMs: nowMs })
      if (this.#known.size > maxKnown) writes.push(...this.#forgetOldest())
      return [...writes, { kind: 'create', event }]
    }
    known.count += 1
    known.lastMs = nowMs
    this.#known.delete(key)
    this.#known.set(key, known)
    if (known.count === 2 || known.writtenMs + refreshMs <= nowMs) writes.push(counted(known, nowMs))
    return writes
  }

  /** Whether a count is still to be written, and therefore `settle` to be called some time. */
  get isOpen(): boolean {
    return [...this.#known.values()].some(({ count, writtenCount }) => count > writtenCount)
  }

  /** The counts of series that are over; of all of them at the end. */
  settle(isEnd: boolean): SeriesWrite[] {
    const nowMs = this.clock.now().getTime()
    return this.#finish(({ lastMs }) => isEnd || lastMs + finishMs <= nowMs)
  }

  #finish(isOver: (known: Known) => boolean): SeriesWrite[] {
    const writes: SeriesWrite[] = []
    for (const [key, known] of this.#known) {
      if (!isOver(known)) break
      this.#known.delete(key)
      if (known.count > known.writtenCount) writes.push(counted(known, known.lastMs))
    }
    return writes
  }

  #forgetOldest(): SeriesWrite[] {
    const [oldest] = this.#known.values()
    return this.#finish((known) => known === oldest)
  }
}

export const seriesSettleMs: number = finishMs

function counted(known: Known, nowMs: number): SeriesWrite {
  known.writtenCount = known.count
  known.writtenMs = nowMs
  const lastObservedTime = new Date(known.lastMs).toISOString().replace('Z', '000Z')
  return { kind: 'count', event: known.event, series: { count: known.count, lastObservedTime } }
}

function keyOf({ type, action, reason, reportingController, regarding }: EventsV1Event): string {
  const { kind, uid, resourceVersion } = regarding ?? {}
  return [type, action, reason, reportingController, kind, uid, resourceVersion].join('\n')
}
