import { randomUUID } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import { type Clock, EventsV1, type EventsV1Event, type KubeObject, type Logger, type Stored } from '@corral/resources'
import { EventSeries, type EventWrite, seriesSettleMs } from './event-series.js'

export interface EventNote {
  type: 'Normal' | 'Warning'
  reason: string
  action: string
  note: string
}

/** Tells users what a controller did to an object. Never blocks and never fails a pass. */
export interface EventRecorder {
  record(regarding: Stored<KubeObject>, note: EventNote): void
}

export interface EventSink {
  /** A recorder that reports under the given name. */
  recorder(reportingController: string): EventRecorder
  /** Settles once everything recorded so far has been sent or given up. */
  drain(): Promise<void>
}

export const silentRecorder: EventRecorder = { record() {} }

const maxWaiting = 10_000
const maxInFlight = 4
/** Notes longer than this are refused by the API, which counts bytes. */
const maxNoteBytes = 1024

/** Sends events in the background, a few at a time; a server that stays away costs events and nothing else. */
export function eventSink(ports: { client: KubeClient; clock: Clock; log: Logger; instance: string }): EventSink {
  const waiting: EventWrite[] = []
  const series = new EventSeries(ports.clock)
  let settling: NodeJS.Timeout | undefined
  const inFlight = new Set<Promise<void>>()

  function pump(): void {
    while (inFlight.size < maxInFlight) {
      const next = waiting.shift()
      if (!next) return
      const sent = send(next).finally(() => {
        inFlight.delete(sent)
        pump()
      })
      inFlight.add(sent)
    }
  }

  async function send(write: EventWrite): Promise<void> {
    const { name = '', namespace = '' } = write.event.metadata ?? {}
    try {
      if (write.kind === 'create') await ports.client.create(EventsV1, write.event, { timeoutMs: 10_000 })
      else {
        const patch = { type: 'merge', body: { series: write.series } } as const
        await ports.client.patch(EventsV1, { name, namespace }, patch, { timeoutMs: 10_000 })
      }
    } catch (error) {
      // Events are best effort: the condition on the object carries the same news.
      ports.log.debug('event not recorded', { reason: write.event.reason, error })
    }
  }

  function enqueue(writes: readonly EventWrite[]): void {
    for (const write of writes) {
      if (waiting.length >= maxWaiting) waiting.shift()
      waiting.push(write)
    }
    pump()
  }

  /** A series that nobody adds to any more still has its last count to tell. */
  function settleLater(): void {
    settling ??= setTimeout(() => {
      settling = undefined
      enqueue(series.settle(false))
      if (series.isOpen) settleLater()
    }, seriesSettleMs).unref()
  }

  return {
    recorder: (reportingController) => ({
      record(regarding, note) {
        const namespace = regarding.metadata.namespace ?? 'default'
        const stamp = { reportingController, reportingInstance: ports.instance, at: ports.clock.now() }
        const writes = series.record(eventFor(regarding, namespace, note, stamp))
        enqueue(writes)
        if (writes.length === 0) settleLater()
      },
    }),
    async drain() {
      clearTimeout(settling)
      settling = undefined
      enqueue(series.settle(true))
      while (inFlight.size > 0) await Promise.all(inFlight)
    },
  }
}

function eventFor(
  regarding: Stored<KubeObject>,
  namespace: string,
  note: EventNote,
  stamp: { reportingController: string; reportingInstance: string; at: Date },
): EventsV1Event {
  const { name, uid, resourceVersion } = regarding.metadata
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${name}.${randomSuffix()}`, namespace },
    eventTime: stamp.at.toISOString().replace('Z', '000Z'),
    reportingController: stamp.reportingController,
    reportingInstance: stamp.reportingInstance,
    regarding: { apiVersion: regarding.apiVersion, kind: regarding.kind, name, namespace, uid, resourceVersion },
    type: note.type,
    reason: note.reason,
    action: note.action,
    note: shortened(note.note),
  }
}

/** 16 digits of the random ones in a UUID, of which Node keeps a supply; the others say what kind of UUID it is. */
function randomSuffix(): string {
  const id = randomUUID()
  return id.slice(0, 8) + id.slice(-8)
}

/** The note up to its last whole character that fits. */
function shortened(text: string): string {
  if (Buffer.byteLength(text) <= maxNoteBytes) return text
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxNoteBytes), { stream: true })
}
