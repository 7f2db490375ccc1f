import type { KubeObject, Stored, WatchEvent } from '@corral/resources'
import type { Delta } from '../kube-client.js'
import { eventError, isExpired } from '../response-error.js'

/** `namespace/name`, or just the name of a cluster-scoped object. */
export function objectKey(object: KubeObject): string {
  const { namespace, name } = object.metadata ?? {}
  return namespace ? `${namespace}/${name}` : (name ?? '')
}

/**
 * Where a watch stands. The maps are moved from state to state rather than copied: only the state returned last may be
 * used again.
 */
export interface WatchState<T extends KubeObject> {
  /** The request to send next: a list, a stream from `resourceVersion`, or a stream that begins with all objects. */
  readonly mode: 'list' | 'stream' | 'initial'
  readonly resourceVersion: string | undefined
  /** Last seen state of every object, by key. */
  readonly known: Map<string, Stored<T>>
  /** Whether `known` has every object there is: false until the first list of a watch that began at a version. */
  readonly complete: boolean
  /** Objects of an `initial` stream that has not said yet that it has sent them all. */
  readonly arriving: Map<string, Stored<T>> | undefined
  readonly allowInitial: boolean
  /** Attempts in a row that brought nothing. */
  readonly failures: number
}

export type WatchInput<T extends KubeObject> =
  | { readonly type: 'listed'; readonly items: readonly Stored<T>[]; readonly resourceVersion: string }
  | { readonly type: 'event'; readonly event: WatchEvent }
  /** The stream ended by itself; `idle` when it did so early and without an event. */
  | { readonly type: 'ended'; readonly idle: boolean }
  | { readonly type: 'failed'; readonly error: unknown }
  /** An `initial` stream keeps quiet: the server does not know how to announce the end of the first objects. */
  | { readonly type: 'stalled' }

export type WatchStep<T extends KubeObject> = readonly [deltas: readonly Delta<T>[], next: WatchState<T>]

/** A watch that has seen nothing. With a version it starts behind that one, else with all objects. */
export function startWatch<T extends KubeObject>(options: {
  resourceVersion?: string | undefined
  allowInitial: boolean
}): WatchState<T> {
  const { resourceVersion, allowInitial } = options
  return {
    mode: resourceVersion !== undefined ? 'stream' : allowInitial ? 'initial' : 'list',
    resourceVersion,
    known: new Map(),
    complete: false,
    arriving: undefined,
    allowInitial,
    failures: 0,
  }
}

/** What a watch reports and does after one input. */
export function stepWatch<T extends KubeObject>(state: WatchState<T>, input: WatchInput<T>): WatchStep<T> {
  switch (input.type) {
    case 'listed':
      return replaceAll(state, byKey(input.items), input.resourceVersion)
    case 'event':
      return stepEvent(state, input.event)
    case 'ended': {
      const failures = input.idle ? state.failures + 1 : 0
      return [[], { ...state, arriving: undefined, failures }]
    }
    case 'stalled':
      return [[], { ...state, mode: 'list', arriving: undefined, allowInitial: false }]
    case 'failed':
      return [[], stepFailure(state, input.error)]
  }
}

function stepFailure<T extends KubeObject>(state: WatchState<T>, error: unknown): WatchState<T> {
  const failures = state.failures + 1
  // A server without WatchList refuses the option; the old way works everywhere.
  if (state.mode === 'initial' && refusesInitial(error)) {
    return { ...state, mode: 'list', arriving: undefined, allowInitial: false, failures: 0 }
  }
  if (state.mode === 'stream' && isExpired(error)) {
    return { ...state, mode: state.allowInitial ? 'initial' : 'list', arriving: undefined, failures }
  }
  return { ...state, arriving: undefined, failures }
}

function stepEvent<T extends KubeObject>(state: WatchState<T>, event: WatchEvent): WatchStep<T> {
  if (event.type === 'ERROR') return [[], stepFailure(state, eventError(event.object))]
  const object = event.object as Stored<T>
  const { resourceVersion } = object.metadata

  if (event.type === 'BOOKMARK') {
    const isEnd = object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true'
    if (state.mode === 'initial') {
      if (!isEnd) return [[], state]
      return replaceAll(state, state.arriving ?? new Map(), resourceVersion)
    }
    return [[], { ...state, resourceVersion, failures: 0 }]
  }
  if (state.mode === 'initial') {
    const arriving = state.arriving ?? new Map<string, Stored<T>>()
    if (event.type === 'DELETED') arriving.delete(objectKey(object))
    else arriving.set(objectKey(object), object)
    return [[], { ...state, arriving }]
  }
  const next = { ...state, resourceVersion, failures: 0 }
  return [event.type === 'DELETED' ? removed(state, object) : changed(state, object, event.type), next]
}

function changed<T extends KubeObject>(
  state: WatchState<T>,
  object: Stored<T>,
  type: 'ADDED' | 'MODIFIED',
): readonly Delta<T>[] {
  const key = objectKey(object)
  const old = state.known.get(key)
  state.known.set(key, object)
  if (!old) return [{ type: state.complete ? 'ADDED' : type, object }]
  return difference(old, object)
}

function removed<T extends KubeObject>(state: WatchState<T>, object: Stored<T>): readonly Delta<T>[] {
  const key = objectKey(object)
  const old = state.known.get(key)
  state.known.delete(key)
  if (old) return [{ type: 'DELETED', object, old }]
  return state.complete ? [] : [{ type: 'DELETED', object }]
}

function difference<T extends KubeObject>(old: Stored<T>, object: Stored<T>): readonly Delta<T>[] {
  if (old.metadata.uid !== object.metadata.uid) {
    return [
      { type: 'DELETED', object: old, old },
      { type: 'ADDED', object },
    ]
  }
  if (old.metadata.resourceVersion === object.metadata.resourceVersion) return []
  return [{ type: 'MODIFIED', object, old }]
}

/** All objects as of now: what changed against what was known, deletions first so that names are free again. */
function replaceAll<T extends KubeObject>(
  state: WatchState<T>,
  current: Map<string, Stored<T>>,
  resourceVersion: string,
): WatchStep<T> {
  const deltas: Delta<T>[] = []
  // A head behind the version we started at means another history: nothing in it has been seen.
  const isReset = state.resourceVersion !== undefined && Number(resourceVersion) < Number(state.resourceVersion)
  const seenUpTo = state.complete || isReset ? undefined : state.resourceVersion
  for (const [key, old] of state.known) {
    if (current.has(key)) continue
    deltas.push({ type: 'DELETED', object: old, old })
    state.known.delete(key)
  }
  for (const [key, object] of current) {
    const old = state.known.get(key)
    if (old) deltas.push(...difference(old, object))
    else if (!isOlder(object, seenUpTo)) deltas.push({ type: 'ADDED', object })
    state.known.set(key, object)
  }
  return [deltas, { ...state, mode: 'stream', resourceVersion, complete: true, arriving: undefined, failures: 0 }]
}

/** Whether a watch that began at `version` would not have reported this object: it has not changed since. */
function isOlder(object: Stored<KubeObject>, version: string | undefined): boolean {
  return version !== undefined && Number(object.metadata.resourceVersion) <= Number(version)
}

function refusesInitial(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('status' in error)) return false
  return error.status === 400 || error.status === 422
}

function byKey<T extends KubeObject>(items: readonly Stored<T>[]): Map<string, Stored<T>> {
  return new Map(items.map((item) => [objectKey(item), item]))
}
