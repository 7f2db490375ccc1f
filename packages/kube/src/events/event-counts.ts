import type { CoreEvent, EventFacts } from './event-facts.js'

/** More different events than this and the oldest is created anew when it happens again. */
const maxKnown = 1024

export type CountWrite =
  | { kind: 'create'; event: CoreEvent }
  | { kind: 'count'; event: CoreEvent; count: number; lastTimestamp: string }

/**
 * Counts repeats on the first event of their kind, as the kubelet's recorder does: the same text about the same part of
 * the same object raises `count` and `lastTimestamp` of the one that is there.
 */
export class EventCounts {
  readonly #known = new Map<string, { event: CoreEvent; count: number }>()

  record(facts: EventFacts): CountWrite[] {
    const { regarding, note, at } = facts
    const key = [regarding.metadata.uid, note.type, note.reason, note.fieldPath, note.note].join('\0')
    const timestamp = at.toISOString().replace(/\.\d+Z$/, 'Z')
    const known = this.#known.get(key)
    if (known) {
      known.count += 1
      return [{ kind: 'count', event: known.event, count: known.count, lastTimestamp: timestamp }]
    }
    const event = coreEvent(facts, timestamp)
    if (this.#known.size >= maxKnown) this.#known.delete(this.#known.keys().next().value ?? '')
    this.#known.set(key, { event, count: 1 })
    return [{ kind: 'create', event }]
  }
}

function coreEvent(facts: EventFacts, timestamp: string): CoreEvent {
  const { regarding, note, name, namespace, reportingController, reportingInstance } = facts
  const { name: objectName, uid } = regarding.metadata
  return {
    metadata: { name, namespace },
    involvedObject: {
      apiVersion: regarding.apiVersion,
      kind: regarding.kind,
      namespace,
      name: objectName,
      uid,
      ...(note.fieldPath ? { fieldPath: note.fieldPath } : {}),
    },
    type: note.type,
    reason: note.reason,
    message: note.note,
    source: { component: reportingController, host: reportingInstance },
    reportingComponent: reportingController,
    reportingInstance,
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    count: 1,
  }
}
