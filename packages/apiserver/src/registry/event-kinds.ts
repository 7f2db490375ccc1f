import { Events, EventsV1, type KubeObject } from '@corral/resources'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { eventChangeErrors, eventErrors, newEventErrors } from '../validation/event.js'
import { fromEventsV1, toEventsV1 } from './event-views.js'
import { describeKind, type KindDefinition } from './kind-definition.js'
import { fieldReader, fieldReaders } from './selectable-fields.js'

const INVOLVED = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

const asStored = (event: JsonObject): JsonObject => fromEventsV1(event as KubeObject) as JsonObject

/** Events: stored once, as `v1` has them, and shown in both versions. */
export const eventKinds: KindDefinition[] = [
  describeKind(Events, {
    shortNames: ['ev'],
    createsOnUpdate: true,
    selectable: {
      ...fieldReaders('reason', 'type', 'reportingComponent', ...INVOLVED.map((field) => `involvedObject.${field}`)),
      source: (event) => fieldReader('source.component')(event) || fieldReader('reportingComponent')(event),
    },
    defaults: showObservedTime,
    validate: (event) => eventErrors(event, 'reportingComponent'),
    prepareCreate: showUnset,
    prepareUpdate: showUnset,
  }),
  describeKind(EventsV1, {
    shortNames: ['ev'],
    createsOnUpdate: true,
    collection: 'events',
    validatedAs: '',
    selectable: fieldReaders('reason', 'type', 'reportingController', ...INVOLVED.map((field) => `regarding.${field}`)),
    defaults: showObservedTime,
    validate: (event, old) =>
      old ? eventChangeErrors(asStored(event), asStored(old)) : newEventErrors(asStored(event)),
    prepareCreate: showUnsetV1,
    prepareUpdate: showUnsetV1,
    toVersion: toEventsV1,
    fromVersion: fromEventsV1,
  }),
]

/** Fields that Kubernetes shows even where there is nothing in them. */
function showUnset(event: JsonObject): void {
  event.source ??= {}
  event.firstTimestamp ??= null
  event.lastTimestamp ??= null
  event.eventTime ??= null
  event.reportingComponent ??= ''
  event.reportingInstance ??= ''
}

function showUnsetV1(event: JsonObject): void {
  event.deprecatedSource ??= {}
  event.deprecatedFirstTimestamp ??= null
  event.deprecatedLastTimestamp ??= null
  event.eventTime ??= null
}

function showObservedTime({ series }: JsonObject): void {
  if (isJsonObject(series)) series.lastObservedTime ??= null
}
