import { type FieldError, invalidValue, required } from '../errors/api-error.js'
import { equalJson, type JsonObject } from '../objects/plain-json.js'
import { checkQualifiedName } from './qualified-name.js'
import { objectOf } from './rules.js'

const MAX_WORD_BYTES = 128
const MAX_MESSAGE_BYTES = 1024

/**
 * What is wrong with an event, whichever version it was written in; the fields have their names in `v1`. One with an
 * `eventTime` was made for `events.k8s.io` and has to say who reports what; an older one only lies where its object does.
 */
export function eventErrors(event: JsonObject, reporterField: string): FieldError[] {
  const { namespace: own } = objectOf(event.metadata)
  const { namespace = '' } = objectOf(event.involvedObject)
  const misplaced = invalidValue('involvedObject.namespace', namespace, 'does not match event.namespace')
  if (!event.eventTime) return namespace === own || (namespace === '' && own === 'default') ? [] : [misplaced]
  return [
    ...(namespace === '' && own !== 'default' && own !== 'kube-system' ? [misplaced] : []),
    ...(event.reportingComponent ? [] : [required(reporterField)]),
    ...checkQualifiedName(textOf(event.reportingComponent), reporterField),
    ...word('reportingInstance', event.reportingInstance),
    ...word('action', event.action),
    ...word('reason', event.reason),
    ...atMost('message', event.message, MAX_MESSAGE_BYTES),
  ]
}

/** What is wrong with a new event of `events.k8s.io`: nothing of the older form, and everything of the newer. */
export function newEventErrors(event: JsonObject): FieldError[] {
  const { component, host } = objectOf(event.source)
  const unset = (field: string, isSet: unknown): FieldError[] =>
    isSet ? [invalidValue(field, '', 'needs to be unset')] : []
  return [
    ...eventErrors(event, 'reportingController'),
    ...seriesErrors(event.series),
    ...(event.eventTime ? [] : [required('eventTime')]),
    ...(event.type === 'Normal' || event.type === 'Warning'
      ? []
      : [invalidValue('type', '', `has invalid value: ${textOf(event.type)}`)]),
    ...unset('firstTimestamp', event.firstTimestamp),
    ...unset('lastTimestamp', event.lastTimestamp),
    ...unset('count', event.count),
    ...unset('source', component || host),
  ]
}

const FIXED = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
] as const

/** How a field is shown that is no longer there, where that is not as an empty text. */
const UNSET: Readonly<Record<string, unknown>> = {
  count: 0,
  eventTime: null,
  firstTimestamp: null,
  lastTimestamp: null,
}

/** What is wrong with a change made through `events.k8s.io`: an event that was written stays, but for its series. */
export function eventChangeErrors(event: JsonObject, old: JsonObject): FieldError[] {
  const changed = FIXED.filter((field) => !equalJson(event[field] ?? null, old[field] ?? null))
  return [
    ...eventErrors(event, 'reportingController'),
    ...(equalJson(event.series ?? null, old.series ?? null) ? [] : seriesErrors(event.series)),
    ...changed.map((field) =>
      invalidValue(
        field === 'reportingComponent' ? 'reportingController' : field,
        event[field] ?? (field in UNSET ? UNSET[field] : ''),
        'field is immutable',
      ),
    ),
  ]
}

function seriesErrors(series: unknown): FieldError[] {
  if (series === undefined || series === null) return []
  const { count, lastObservedTime } = objectOf(series)
  return [
    ...(typeof count === 'number' && count >= 2 ? [] : [invalidValue('series.count', '', 'should be at least 2')]),
    ...(lastObservedTime ? [] : [required('series.lastObservedTime')]),
  ]
}

const word = (field: string, value: unknown): FieldError[] => [
  ...(value ? [] : [required(field)]),
  ...atMost(field, value, MAX_WORD_BYTES),
]

const atMost = (field: string, value: unknown, most: number): FieldError[] =>
  Buffer.byteLength(textOf(value)) > most ? [invalidValue(field, '', `can have at most ${most} characters`)] : []

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
