import type { Asked } from './asked.js'
import { definitionRequests } from './definition-requests.js'
import { eventRequests } from './event-requests.js'
import { formats } from './format-requests.js'
import { kinds } from './kind-requests.js'
import { addresses, objects } from './object-requests.js'
import { patches } from './patch-requests.js'
import { podRequests } from './pod-requests.js'
import { lists, streams, tables } from './read-requests.js'
import { kept, refusals } from './refused-requests.js'
import { runtimeClasses } from './runtime-class-requests.js'

/** In this order: the later ones are about what the earlier ones stored. */
export const requests: readonly Asked[] = [
  ...objects,
  ...kept,
  ...refusals,
  ...patches,
  ...addresses,
  ...lists,
  ...streams,
  ...tables,
  ...formats,
  ...kinds,
  ...eventRequests,
  ...podRequests,
  ...definitionRequests,
  ...runtimeClasses,
]
