import type { ApiResponse, WatchFrame, WatchFrames } from '@corral/ports'
import type { KubeObject, Status } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import { expired, type FieldError, forbiddenField, invalid, notSupported } from '../errors/api-error.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { queryFlag, queryInteger } from '../request/query.js'
import { errorStatus, jsonHeaders } from '../request/responses.js'
import type { StoreEvent } from '../store/event-ring.js'
import { currentObjects, isSelected, type Selection, versionOf } from './list.js'
import { type EventRepresentation, makeFrame } from './representation.js'
import { prepareViews, viewOf } from './view.js'
import { WatchQueue } from './watch-queue.js'

const BOOKMARK_INTERVAL_MS = 15_000
const LAST_BOOKMARK_MS = 2_000
const DEFAULT_MIN_MS = 30 * 60_000

/** Opens a watch: what `query` asks to see first, then every later event until the deadline or until `signal`. */
export function openWatch(
  context: ServerContext,
  kind: KindDefinition,
  selection: Selection,
  query: URLSearchParams,
  representation: EventRepresentation,
  signal?: AbortSignal,
): ApiResponse {
  checkWatchOptions(query)
  const wantsBookmarks = queryFlag(query, 'allowWatchBookmarks')
  const version = versionOf(query)
  // Who says nothing else begins with what is there; who declines it and names no version begins now.
  const sendsInitial = query.has('sendInitialEvents') ? queryFlag(query, 'sendInitialEvents') : !version
  const { store } = context
  const collection = store.collection(kind.collection)
  const after = version || store.head

  if (!sendsInitial && (after > store.head || after < collection.ring.floorRv)) {
    return watchResponse(
      only(errorFrame(expired(`too old resource version: ${after} (${collection.ring.floorRv})`).status)),
    )
  }

  const timers: NodeJS.Timeout[] = []
  const show = (event: StoreEvent): void => {
    const frame = frameOf(kind, selection, representation, event)
    if (frame) queue.push(frame, event.sizeBytes)
  }
  /** An object that cannot be shown in this version ends this watch, not the write that made it. */
  const fail = (error: unknown): void => {
    queue.push(errorFrame(errorStatus(error)), 0)
    queue.end()
  }
  /** One after the other, as soon as the webhook has answered. */
  let converted = Promise.resolve()
  const showConverted = (event: StoreEvent): void => {
    const objects = event.previous ? [event.object, event.previous] : [event.object]
    converted = converted
      .then(() => prepareViews(kind, objects))
      .then(() => show(event))
      .catch(fail)
  }
  const listener = (event: StoreEvent): void => {
    try {
      if (kind.loadConversions) showConverted(event)
      else show(event)
    } catch (error) {
      fail(error)
    }
  }
  const queue: WatchQueue = new WatchQueue(() => {
    collection.listeners.delete(listener)
    for (const timer of timers) clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    forgetKind()
  })
  const onAbort = (): void => queue.end()
  // A kind whose definition changes or goes has other objects, or none: its watchers begin anew.
  const forgetKind = kind.isCustom ? context.registry.onRemoved(kind, onAbort) : () => {}

  if (sendsInitial) {
    const initial = currentObjects(context, kind, selection)
    queue.prefill(initial.map((object) => makeFrame('ADDED', representation.show(object))))
    if (wantsBookmarks) {
      const annotations = { 'k8s.io/initial-events-end': 'true' }
      queue.prefill([makeFrame('BOOKMARK', representation.bookmark(String(store.head), annotations))])
    }
  } else {
    for (const event of collection.ring.after(after) ?? []) {
      if (kind.loadConversions) {
        showConverted(event)
        continue
      }
      const frame = frameOf(kind, selection, representation, event)
      if (frame) queue.prefill([frame])
    }
  }
  collection.listeners.add(listener)
  if (signal?.aborted) queue.end()
  else signal?.addEventListener('abort', onAbort, { once: true })

  const timeoutMs = (queryInteger(query, 'timeoutSeconds') ?? 0) * 1000 || DEFAULT_MIN_MS * (1 + Math.random())
  timers.push(setTimeout(() => queue.end(), timeoutMs).unref())
  if (wantsBookmarks) {
    const send = (frame: WatchFrame): void => {
      // Never before the events it speaks for.
      if (kind.loadConversions) converted = converted.then(() => queue.push(frame, 0))
      else queue.push(frame, 0)
    }
    timers.push(...bookmarkTimers(store, send, representation, timeoutMs))
  }
  return watchResponse(queue)
}

function bookmarkTimers(
  store: ServerContext['store'],
  deliver: (frame: WatchFrame) => void,
  representation: EventRepresentation,
  timeoutMs: number,
): NodeJS.Timeout[] {
  let last = store.head
  const send = (): void => {
    if (store.head === last) return
    last = store.head
    deliver(makeFrame('BOOKMARK', representation.bookmark(String(last))))
  }
  const timers = [setInterval(send, BOOKMARK_INTERVAL_MS).unref()]
  if (timeoutMs > LAST_BOOKMARK_MS) timers.push(setTimeout(send, timeoutMs - LAST_BOOKMARK_MS).unref())
  return timers
}

function frameOf(
  kind: KindDefinition,
  selection: Selection,
  representation: EventRepresentation,
  event: StoreEvent,
): WatchFrame | undefined {
  if (selection.namespace !== undefined && event.namespace !== selection.namespace) return undefined
  const seen = visibleEvent(kind, selection, event)
  if (!seen) return undefined
  if (representation.cacheKey === undefined) return makeFrame(seen.type, representation.show(seen.object()))
  const { cacheKey } = representation
  for (const made of event.frames) if (made.representation === cacheKey && made.change === seen.key) return made.frame
  const frame = makeFrame(seen.type, representation.show(seen.object()))
  event.frames = [...event.frames, { representation: cacheKey, change: seen.key, frame }]
  return frame
}

/** How an event looks through a selection: an object that starts or stops matching is added or deleted. */
export function visibleEvent(
  kind: KindDefinition,
  selection: Selection,
  event: StoreEvent,
): { type: StoreEvent['type']; key: string; object(): KubeObject } | undefined {
  const object = viewOf(kind, event.object)
  if (!selection.labels && !selection.fields) return { type: event.type, key: event.type, object: () => object }
  const matchedBefore = event.previous !== undefined && isSelected(selection, viewOf(kind, event.previous))
  if (event.type === 'DELETED') {
    return matchedBefore ? { type: 'DELETED', key: 'DELETED', object: () => object } : undefined
  }
  if (isSelected(selection, object)) {
    const type = matchedBefore ? 'MODIFIED' : 'ADDED'
    return { type, key: type, object: () => object }
  }
  if (!matchedBefore) return undefined
  // The watcher knows the object as it was, so that is what it loses, at the version at which it lost it.
  const previous = viewOf(kind, event.previous!)
  const last = { ...previous, metadata: { ...previous.metadata, resourceVersion: String(event.rv) } }
  return { type: 'DELETED', key: 'left', object: () => last }
}

function checkWatchOptions(query: URLSearchParams): void {
  const match = query.get('resourceVersionMatch') ?? ''
  const sendsInitial = query.has('sendInitialEvents')
  const errors: FieldError[] = []
  if (sendsInitial && match !== 'NotOlderThan') {
    errors.push(
      forbiddenField('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    )
  }
  if (!sendsInitial && match !== '') {
    errors.push(
      forbiddenField(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    )
  }
  if (match !== '' && match !== 'NotOlderThan')
    errors.push(notSupported('resourceVersionMatch', match, ['NotOlderThan']))
  if (query.get('continue'))
    errors.push(forbiddenField('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'))
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors)
}

const watchResponse = (frames: WatchFrames): ApiResponse => ({
  status: 200,
  headers: jsonHeaders(),
  body: { type: 'watch', frames },
})

const errorFrame = (status: Status): WatchFrame => makeFrame('ERROR', status as KubeObject)

async function* only(frame: WatchFrame): AsyncGenerator<WatchFrame> {
  yield frame
}
