import type { KubeObject, Stored, WatchEvent } from '@corral/resources'
import { errorCode, KubeError } from '@corral/resources'
import { type Backoff, backoffMs, sleep } from '../backoff.js'
import type { ObservedBatch } from '../kube-client.js'
import { eventError } from '../response-error.js'
import { startWatch, stepWatch, type WatchInput, type WatchState } from './watch-state.js'

/** The two requests a watch is made of. */
export interface WatchRequests<T extends KubeObject> {
  list(signal: AbortSignal): Promise<{ items: readonly Stored<T>[]; resourceVersion: string }>
  open(query: WatchQuery, signal: AbortSignal): Promise<AsyncIterable<WatchEvent>>
}

export interface WatchQuery {
  readonly resourceVersion: string | undefined
  readonly sendInitialEvents: boolean
  readonly timeoutSeconds: number
}

export interface WatchLoopOptions {
  readonly resourceVersion?: string | undefined
  readonly allowInitial: boolean
  readonly signal?: AbortSignal | undefined
  readonly onError?: ((error: unknown) => void) | undefined
}

const reconnect: Backoff = { firstMs: 100, maxMs: 15_000 }
/** A stream that ends sooner than this without an event counts as a failure, or the loop would spin. */
const shortStreamMs = 1_000
/** How long an `initial` stream may keep quiet before the list takes over. */
const initialQuietMs = 10_000
/** Beyond its own deadline the server has this long to end the stream before we believe it is gone. */
const graceMs = 15_000

/**
 * Sends the requests the state machine asks for and feeds it what comes back, until `signal` aborts or the iteration is
 * left; either ends the request under way. Yields only batches that say something; throws only for a request that can
 * never succeed (`BadRequest`).
 */
export async function* watchLoop<T extends KubeObject>(
  requests: WatchRequests<T>,
  options: WatchLoopOptions,
): AsyncGenerator<ObservedBatch<T>> {
  const { onError } = options
  if (options.signal?.aborted) return
  const lifetime = new AbortController()
  const { signal } = lifetime
  const abort = () => lifetime.abort(options.signal?.reason)
  options.signal?.addEventListener('abort', abort, { once: true })
  let state = startWatch<T>(options)
  let complete = false

  try {
    while (!signal.aborted) {
      let retryAfterMs = 0
      try {
        for await (const input of nextInputs(state, requests, signal)) {
          if (signal.aborted) return
          const [deltas, next] = stepWatch(state, input)
          state = next
          if (deltas.length > 0 || state.complete !== complete) {
            complete = state.complete
            yield { deltas, known: state.known, complete }
          }
          if (input.type === 'event' && input.event.type === 'ERROR') {
            onError?.(eventError(input.event.object))
            break
          }
        }
      } catch (error) {
        if (signal.aborted) return
        if (errorCode(error) === 'BadRequest' && state.mode !== 'initial') throw error
        onError?.(error)
        if (error instanceof KubeError) retryAfterMs = error.retryAfterMs ?? 0
        state = stepWatch(state, { type: 'failed', error })[1]
      }
      if (state.failures === 0) continue
      const waitMs = backoffMs(state.failures - 1, reconnect, Math.random())
      await sleep(Math.max(waitMs, Math.min(retryAfterMs, reconnect.maxMs)), signal)
    }
  } finally {
    options.signal?.removeEventListener('abort', abort)
    lifetime.abort()
  }
}

function nextInputs<T extends KubeObject>(
  state: WatchState<T>,
  requests: WatchRequests<T>,
  signal: AbortSignal,
): AsyncGenerator<WatchInput<T>> {
  return state.mode === 'list' ? listInputs(requests, signal) : streamInputs(state, requests, signal)
}

async function* listInputs<T extends KubeObject>(
  requests: WatchRequests<T>,
  signal: AbortSignal,
): AsyncGenerator<WatchInput<T>> {
  yield { type: 'listed', ...(await requests.list(signal)) }
}

async function* streamInputs<T extends KubeObject>(
  state: WatchState<T>,
  requests: WatchRequests<T>,
  signal: AbortSignal,
): AsyncGenerator<WatchInput<T>> {
  const sendInitialEvents = state.mode === 'initial'
  const timeoutSeconds = 240 + Math.floor(Math.random() * 241)
  const lifetime = new AbortController()
  const abort = () => lifetime.abort(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  let stalled = false
  const overdue = setTimeout(
    () => lifetime.abort(new Error('the watch outlived its deadline')),
    timeoutSeconds * 1000 + graceMs,
  )
  const quiet = setTimeout(() => {
    stalled = true
    lifetime.abort(new Error('the server never announced the end of the initial events'))
  }, initialQuietMs)
  let areArriving = sendInitialEvents
  if (!areArriving) clearTimeout(quiet)

  const startedAt = performance.now()
  let events = 0
  try {
    const { resourceVersion } = state
    const stream = await requests.open({ resourceVersion, sendInitialEvents, timeoutSeconds }, lifetime.signal)
    for await (const event of stream) {
      events++
      if (event.type === 'BOOKMARK') {
        areArriving = false
        clearTimeout(quiet)
      } else if (areArriving) quiet.refresh()
      yield { type: 'event', event }
    }
    yield { type: 'ended', idle: events === 0 && performance.now() - startedAt < shortStreamMs }
  } catch (error) {
    if (!stalled) throw error
    yield { type: 'stalled' }
  } finally {
    clearTimeout(overdue)
    clearTimeout(quiet)
    signal.removeEventListener('abort', abort)
    lifetime.abort()
  }
}
