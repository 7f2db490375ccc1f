import { type Asked, core, create, get, group, of, patch, store } from './asked.js'

const events = `${group('events.k8s.io/v1')}/events`
const time = '2026-01-01T00:00:00.000000Z'
const regarding = { kind: 'Pod', name: 'p', namespace: '{ns}', apiVersion: 'v1' }
const event = {
  ...of('events.k8s.io/v1', 'Event'),
  regarding,
  reason: 'R',
  note: 'n',
  type: 'Normal',
  action: 'A',
  reportingController: 'example.com/c',
  reportingInstance: 'c-1',
  eventTime: time,
}
const named = (name: string, object: object): object => ({ ...object, metadata: { name } })
const older = { ...of('v1', 'Event'), involvedObject: regarding, reason: 'R', message: 'n', type: 'Normal' }

/** New events of `events.k8s.io`, each with something about it that is missing, too long or of the older form. */
const created: readonly Asked[] = [
  {},
  ...['eventTime', 'reportingController', 'reportingInstance', 'action', 'reason', 'type', 'note', 'regarding'].map(
    (field) => ({ [field]: undefined }),
  ),
  ...['reportingController', 'reportingInstance', 'action', 'reason'].map((field) => ({ [field]: 'x'.repeat(129) })),
  { reportingController: 'not a name!' },
  { reportingController: 'UPPER/x' },
  { note: 'x'.repeat(1024) },
  { note: 'é'.repeat(600) },
  { type: 'Other' },
  { eventTime: 'nope' },
  { series: {} },
  { series: { count: 1, lastObservedTime: time } },
  { series: { count: 2, lastObservedTime: time } },
  { series: { count: 2 } },
  { deprecatedCount: 1 },
  { deprecatedFirstTimestamp: '2026-01-01T00:00:00Z' },
  { deprecatedLastTimestamp: '2026-01-01T00:00:00Z' },
  { deprecatedSource: { component: 'x' } },
  { regarding: { kind: 'Pod', name: 'p', namespace: 'other' } },
  { regarding: { kind: 'Node', name: 'p' } },
  { related: { kind: 'Pod', name: 'q', namespace: '{ns}' } },
  { metadata: { name: 'Bad Name' } },
].map((part) => create(events, { ...event, ...part }))

/** The same rules hold in `v1` for events with an `eventTime`, and hardly any for those without. */
const createdInCore: readonly Asked[] = [
  {},
  { eventTime: time },
  { eventTime: time, reportingComponent: 'example.com/c', reportingInstance: 'i', action: 'A', type: 'Other' },
  { type: 'Other', reason: '', message: 'x'.repeat(1025), series: { count: 1 } },
  { involvedObject: undefined },
  { involvedObject: { kind: 'Node', name: 'n', apiVersion: 'v1' } },
].map((part) => create(`${core}/events`, { ...older, ...part }))

/** What may change: through `events.k8s.io` the series and the metadata, through `v1` everything. */
const changed: readonly Asked[] = [
  store(events, named('kept', event)),
  get(`${core}/events/kept`),
  create(events, named('kept', event)),
  get(`${events}/none`),
  ...[
    { note: 'other' },
    { type: 'Other' },
    { action: 'B' },
    { reportingController: 'example.com/d' },
    { reportingInstance: 'z' },
    { eventTime: '2026-01-02T00:00:00.000000Z' },
    { eventTime: null },
    { deprecatedCount: 4 },
    { series: { count: 2, lastObservedTime: time } },
    { series: { count: 1, lastObservedTime: time } },
    { metadata: { labels: { a: 'b' } } },
  ].map((body) => patch(`${events}/kept`, 'merge', body)),
  store(`${core}/events`, { ...named('old', older), count: 1, source: { component: 'kubelet', host: 'h' } }),
  get(`${events}/old`),
  patch(`${events}/old`, 'merge', { deprecatedCount: 2 }),
  ...[{ reason: 'Q', count: 2 }, { involvedObject: { namespace: 'x' } }, { source: null }].map((body) =>
    patch(`${core}/events/old`, 'merge', body),
  ),
  patch(`${events}/applied`, 'apply', { ...named('applied', event), type: 'Other' }),
]

export const eventRequests: readonly Asked[] = [...created, ...createdInCore, ...changed]
