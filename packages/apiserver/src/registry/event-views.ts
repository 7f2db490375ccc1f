import type { KubeObject } from '@corral/resources'
import type { JsonObject } from '../objects/plain-json.js'

/** Pairs of names of the same field: in `v1`, which is what is stored, and in `events.k8s.io/v1`. */
const RENAMED: readonly (readonly [core: string, events: string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['count', 'deprecatedCount'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['reportingComponent', 'reportingController'],
]

/** A stored event (core `v1`) as `events.k8s.io/v1` shows it. */
export function toEventsV1(stored: KubeObject): KubeObject {
  return rename(stored, 'events.k8s.io/v1', (core) => RENAMED.find(([name]) => name === core)?.[1])
}

/** An `events.k8s.io/v1` event as it is stored. */
export function fromEventsV1(event: KubeObject): KubeObject {
  return rename(event, 'v1', (name) => RENAMED.find(([, events]) => events === name)?.[0])
}

function rename(event: KubeObject, apiVersion: string, nameOf: (name: string) => string | undefined): KubeObject {
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(event)) {
    // Empty reporters are written out in one version and left out in the other.
    if (value === '' && key.startsWith('reporting')) continue
    result[nameOf(key) ?? key] = value
  }
  result.apiVersion = apiVersion
  return result as KubeObject
}
