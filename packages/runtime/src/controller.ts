import { type Logger, silentLogger } from '@corral/resources'
import { splitKey } from './object-key.js'
import type { ControllerMetrics, ObjectKey, Reconcile } from './reconcile.js'
import { isTerminal } from './terminal-error.js'
import { systemTimer, type Timer } from './timer.js'
import type { WorkQueue } from './work-queue.js'

export interface ControllerOptions {
  name: string
  /** Passes that may run at once, each on its own key. */
  workers: number
  reconcile: Reconcile
  queue: WorkQueue
  metrics?: ControllerMetrics
  log?: Logger
  timer?: Timer
  /** Aborting it stops the loop: no further pass starts, and running ones see it in their request. */
  signal: AbortSignal
}

export interface RunningController {
  readonly name: string
  /** Settles once the last running pass has ended after `signal` aborted. Never rejects. */
  readonly stopped: Promise<void>
}

/**
 * Takes keys from the queue and reconciles them. A pass that throws is tried again with the queue's backoff, a
 * `TerminalError` is not; a pass that asks for a later look is forgiven its earlier failures. The queue closes with the loop.
 */
export function startController(options: ControllerOptions): RunningController {
  const { queue, signal } = options
  const close = (): void => queue.close()
  if (signal.aborted) close()
  else signal.addEventListener('abort', close, { once: true })
  const loop: Loop = { ...options, log: options.log ?? silentLogger, timer: options.timer ?? systemTimer, active: 0 }
  const workers = Array.from({ length: options.workers }, () => work(loop))
  return { name: options.name, stopped: Promise.all(workers).then(() => signal.removeEventListener('abort', close)) }
}

interface Loop extends ControllerOptions {
  log: Logger
  timer: Timer
  active: number
}

async function work(loop: Loop): Promise<void> {
  for (let key = await loop.queue.next(); key !== undefined; key = await loop.queue.next()) {
    changeActive(loop, +1)
    try {
      await pass(loop, key)
    } finally {
      changeActive(loop, -1)
      loop.queue.done(key)
    }
  }
}

async function pass(loop: Loop, key: ObjectKey): Promise<void> {
  const { name, queue, metrics, timer, signal } = loop
  const startedAtMs = timer.now().getTime()
  const observe = (result: Parameters<ControllerMetrics['reconciled']>[1]): void =>
    metrics?.reconciled(name, result, (timer.now().getTime() - startedAtMs) / 1000)
  // Not `key`: loggers censor a field of that name.
  const log = loop.log.child({ controller: name, object: key })
  try {
    const { requeueAfterMs } = await loop.reconcile({ key, ...splitKey(key), signal, log })
    queue.forget(key)
    if (requeueAfterMs === undefined) return observe('success')
    observe('requeue_after')
    queue.addAfter(key, requeueAfterMs)
  } catch (error) {
    // An error after the stop is the stop itself arriving in the pass; nobody is left to try again.
    if (signal.aborted) return
    observe('error')
    if (isTerminal(error)) {
      queue.forget(key)
      log.error('reconcile failed for good', { error })
      return
    }
    const retryInMs = queue.addRateLimited(key, retryAfterMs(error))
    log.warn('reconcile failed', { error, retryInMs })
  }
}

/** The pause a busy server asked for, where the error carries one. */
function retryAfterMs(error: unknown): number {
  if (typeof error !== 'object' || error === null || !('retryAfterMs' in error)) return 0
  return typeof error.retryAfterMs === 'number' ? error.retryAfterMs : 0
}

function changeActive(loop: Loop, by: number): void {
  loop.active += by
  loop.metrics?.activeWorkers(loop.name, loop.active)
}
