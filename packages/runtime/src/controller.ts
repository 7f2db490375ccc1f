import { type Logger, silentLogger } from '@corral/resources'
import { Courtesy } from './courtesy.js'
import { Fifo } from './fifo.js'
import { splitKey } from './object-key.js'
import type { ControllerMetrics, ObjectKey, Reconcile, ReconcileResult } from './reconcile.js'
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
  /** Whom patient passes and the rests of others give way to; nobody without it. */
  courtesy?: Courtesy
  /** Whether nobody waits for what a pass on the key would do. It has its turn with the chores, and keeps no worker. */
  isPatient?: (key: ObjectKey) => boolean
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
  const loop: Loop = {
    ...options,
    log: options.log ?? silentLogger,
    timer: options.timer ?? systemTimer,
    courtesy: options.courtesy ?? new Courtesy(),
    active: 0,
    forRoom: new Fifo(),
    rests: new Set(),
  }
  const workers = Array.from({ length: options.workers }, () => work(loop))
  async function stopped(): Promise<void> {
    await Promise.all(workers)
    await Promise.all(loop.rests)
    signal.removeEventListener('abort', close)
  }
  return { name: options.name, stopped: stopped() }
}

interface Loop extends ControllerOptions {
  log: Logger
  timer: Timer
  courtesy: Courtesy
  active: number
  /** Passes that would be one too many at once. */
  forRoom: Fifo<() => void>
  /** Patient passes and rests of others under way. */
  rests: Set<Promise<void>>
}

async function work(loop: Loop): Promise<void> {
  const { queue } = loop
  for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
    const taken = key
    if (loop.isPatient?.(taken)) {
      keepTaken(loop, taken, passPatiently(loop, taken))
      continue
    }
    const later = await countedPass(loop, taken)
    if (later) keepTaken(loop, taken, finishLater(loop, taken, later))
    else queue.done(taken)
  }
}

/** The key stays taken until the work on it has ended; the worker goes on. */
function keepTaken({ queue, rests }: Loop, key: ObjectKey, work: Promise<void>): void {
  const rest = work.finally(() => {
    queue.done(key)
    rests.delete(rest)
  })
  rests.add(rest)
}

async function passPatiently(loop: Loop, key: ObjectKey): Promise<void> {
  const { courtesy, signal } = loop
  try {
    const later = await courtesy.patient(() => countedPass(loop, key), signal)
    if (later) await finishLater(loop, key, later)
  } catch (error) {
    // Passes do not throw: this is the stop, which found it waiting.
    if (!signal.aborted) throw error
  }
}

/** Patient passes keep no worker while they wait, but beside those of the workers they are not more than there are. */
async function countedPass(loop: Loop, key: ObjectKey): Promise<ReconcileResult | undefined> {
  while (loop.active >= loop.workers) await new Promise<void>((resolve) => loop.forRoom.push(resolve))
  changeActive(loop, +1)
  const later = await pass(loop, key)
  changeActive(loop, -1)
  loop.forRoom.shift()?.()
  return later
}

async function pass(loop: Loop, key: ObjectKey): Promise<ReconcileResult | undefined> {
  const { name, queue, metrics, timer, signal } = loop
  const startedAtMs = timer.now().getTime()
  const observe = (result: Parameters<ControllerMetrics['reconciled']>[1]): void =>
    metrics?.reconciled(name, result, (timer.now().getTime() - startedAtMs) / 1000)
  // Not `key`: loggers censor a field of that name.
  const log = loop.log.child({ controller: name, object: key })
  try {
    const result = await loop.reconcile({ key, ...splitKey(key), signal, log })
    observe(result.requeueAfterMs === undefined ? 'success' : 'requeue_after')
    if (result.later) return result
    rested(queue, key, result)
  } catch (error) {
    // An error after the stop is the stop itself arriving in the pass; nobody is left to try again.
    if (signal.aborted) return undefined
    observe('error')
    failed(loop, key, error)
  }
  return undefined
}

async function finishLater(loop: Loop, key: ObjectKey, result: ReconcileResult): Promise<void> {
  const { courtesy, queue, metrics, name, signal } = loop
  try {
    await courtesy.patient(async () => result.later?.(), signal)
    rested(queue, key, result)
  } catch (error) {
    if (signal.aborted) return
    metrics?.reconciled(name, 'error', 0)
    failed(loop, key, error)
  }
}

function rested(queue: WorkQueue, key: ObjectKey, { requeueAfterMs }: ReconcileResult): void {
  queue.forget(key)
  if (requeueAfterMs !== undefined) queue.addAfter(key, requeueAfterMs)
}

function failed({ name, queue, log, metrics }: Loop, key: ObjectKey, error: unknown): void {
  const about = log.child({ controller: name, object: key })
  if (isTerminal(error)) {
    queue.forget(key)
    metrics?.gaveUp(name)
    about.error('reconcile failed for good', { error })
    return
  }
  const retryInMs = queue.addRateLimited(key, retryAfterMs(error))
  about.warn('reconcile failed', { error, retryInMs })
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
