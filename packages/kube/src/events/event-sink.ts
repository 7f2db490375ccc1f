import { randomUUID } from 'node:crypto'
import type { Clock, Logger } from '@corral/ports'
import { Events, EventsV1, type EventsV1Event, type KubeObject, type Stored } from '@corral/resources'
import type { KubeClient } from '../kube-client.js'
import { type CountWrite, EventCounts } from './event-counts.js'
import type { EventFacts, EventNote } from './event-facts.js'
import { EventSeries, type SeriesWrite, seriesSettleMs } from './event-series.js'
import { type EventRequest, EventWriter } from './event-writer.js'

/** Tells users what was done to an object. Never blocks its caller and never fails. */
export interface EventRecorder {
  record(regarding: Stored<KubeObject>, note: EventNote): void
}

export interface EventSink {
  /** A recorder that reports under the given name. */
  recorder(reportingController: string): EventRecorder
  /** Settles once everything recorded so far has been sent or given up. */
  drain(): Promise<void>
}

export interface EventSinkOptions {
  client: KubeClient
  clock: Clock
  log: Logger
  /** Who reports: a pod of the controller, a node. */
  instance: string
  /**
   * `events.k8s.io/v1` repeats as series, the way controllers report; `v1` repeats as counts, the way a kubelet does.
   * `events.k8s.io/v1` where left out.
   */
  api?: 'events.k8s.io/v1' | 'v1'
}

export const silentRecorder: EventRecorder = { record() {} }

const timeoutMs = 10_000
/** Notes longer than this are refused by the API, which counts bytes. */
const maxNoteBytes = 1024

export function eventSink({ client, clock, log, instance, api }: EventSinkOptions): EventSink {
  const writer = new EventWriter(log)
  const series = new EventSeries(clock)
  const counts = new EventCounts()
  let settling: NodeJS.Timeout | undefined
  const push = (writes: readonly SeriesWrite[]): void => {
    for (const write of writes) writer.push(seriesRequest(client, write))
  }

  /** The last count of a series is written some time after its last repeat, which nothing else would wake us for. */
  function settleLater(): void {
    settling ??= setTimeout(() => {
      settling = undefined
      push(series.settle(false))
      if (series.isOpen) settleLater()
    }, seriesSettleMs).unref()
  }

  function record(facts: EventFacts): void {
    if (api === 'v1') {
      for (const write of counts.record(facts)) writer.push(countRequest(client, write))
      return
    }
    const writes = series.record(seriesEvent(facts))
    push(writes)
    if (writes.length === 0) settleLater()
  }

  return {
    recorder: (reportingController) => ({
      record(regarding, note) {
        record({
          regarding,
          note: { ...note, note: shortened(note.note) },
          name: `${regarding.metadata.name}.${randomSuffix()}`,
          namespace: regarding.metadata.namespace ?? 'default',
          reportingController,
          reportingInstance: instance,
          at: clock.now(),
        })
      },
    }),
    async drain() {
      clearTimeout(settling)
      settling = undefined
      push(series.settle(true))
      await writer.drain()
    },
  }
}

function seriesRequest(client: KubeClient, write: SeriesWrite): EventRequest {
  const { name = '', namespace = '' } = write.event.metadata ?? {}
  return {
    event: `${namespace}/${name}`,
    send: () =>
      write.kind === 'create'
        ? client.create(EventsV1, write.event, { timeoutMs })
        : client.patch(EventsV1, { name, namespace }, { type: 'merge', body: { series: write.series } }, { timeoutMs }),
  }
}

function countRequest(client: KubeClient, write: CountWrite): EventRequest {
  const { name = '', namespace = '' } = write.event.metadata ?? {}
  return {
    event: `${namespace}/${name}`,
    send() {
      if (write.kind === 'create') return client.create(Events, write.event, { timeoutMs })
      const { count, lastTimestamp } = write
      return client.patch(Events, { name, namespace }, { type: 'merge', body: { count, lastTimestamp } }, { timeoutMs })
    },
  }
}

function seriesEvent(facts: EventFacts): EventsV1Event {
  const { regarding, note, namespace } = facts
  const { name, uid, resourceVersion } = regarding.metadata
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: facts.name, namespace },
    eventTime: facts.at.toISOString().replace('Z', '000Z'),
    reportingController: facts.reportingController,
    reportingInstance: facts.reportingInstance,
    regarding: { apiVersion: regarding.apiVersion, kind: regarding.kind, name, namespace, uid, resourceVersion },
    type: note.type,
    reason: note.reason,
    action: note.action,
    note: note.note,
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
