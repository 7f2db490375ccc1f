import { type Logger, silentLogger } from '@corral/ports'
import { Fifo } from './fifo.js'
import { splitKey } from './object-key.js'
import { PriorityGate } from './priority-gate.js'
import type { ControllerMetrics, ObjectKey, Reconcile, ReconcileResult } from './reconcile.js'
import { isTerminal } from './terminal-error.js'
import { systemTimer, type Timer } from './timer.js'
import type { WorkQueue } from './work-queue.js'

export interface ControllerOptions {
  name: string
  /** Reconciles that may run at once, each on its own key. */
  workers: number
  reconcile: Reconcile
  queue: WorkQueue
  metrics?: ControllerMetrics
  log?: Logger
  timer?: Timer
  /** Where low-priority reconciles and deferred writes wait for high-priority work; without it they never wait. */
  priorities?: PriorityGate
  /** Whether a reconcile of the key has low priority: no user waits for it. It holds no worker while it waits. */
  isLowPriority?: (key: ObjectKey) => boolean
  /** Aborting it stops the loop: no further reconcile starts, and running ones see it in their request. */
  signal: AbortSignal
}

export interface RunningController {
  readonly name: string
  /** Settles once the last running reconcile has ended after `signal` aborted. Never rejects. */
  readonly stopped: Promise<void>
}

/**
 * Takes keys from the queue and reconciles them. A reconcile that throws is tried again with the queue's backoff, a `TerminalError`
 * is not; one that succeeds or asks to be requeued resets the backoff. The queue closes with the loop.
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
    priorities: options.priorities ?? new PriorityGate(),
    active: 0,
    forRoom: new Fifo(),
    background: new Set(),
  }
  const workers = Array.from({ length: options.workers }, () => work(loop))
  async function stopped(): Promise<void> {
    await Promise.all(workers)
    await Promise.all(loop.background)
    signal.removeEventListener('abort', close)
  }
  return { name: options.name, stopped: stopped() }
}

interface Loop extends ControllerOptions {
  log: Logger
  timer: Timer
  priorities: PriorityGate
  active: number
  /** Low-priority reconciles waiting because `workers` reconciles run already. */
  forRoom: Fifo<() => void>
  /** Low-priority reconciles and deferred writes that have not ended. */
  background: Set<Promise<void>>
}

async function work(loop: Loop): Promise<void> {
  const { queue } = loop
  for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
    const taken = key
    if (loop.isLowPriority?.(taken)) {
      keepTaken(loop, taken, reconcileAtLowPriority(loop, taken))
      continue
    }
    const unfinished = await countedReconcile(loop, taken)
    if (unfinished) keepTaken(loop, taken, runDeferredWrite(loop, taken, unfinished))
    else queue.done(taken)
  }
}

/** Keeps the key from other workers until the work on it has ended; the worker itself goes on with the next key. */
function keepTaken({ queue, background }: Loop, key: ObjectKey, work: Promise<void>): void {
  const tracked = work.finally(() => {
    queue.done(key)
    background.delete(tracked)
  })
  background.add(tracked)
}

async function reconcileAtLowPriority(loop: Loop, key: ObjectKey): Promise<void> {
  const { priorities, signal } = loop
  try {
    const unfinished = await priorities.low(() => countedReconcile(loop, key), signal)
    if (unfinished) await runDeferredWrite(loop, key, unfinished)
  } catch (error) {
    // A reconcile's own errors are handled inside: this is the abort of one that still waited.
    if (!signal.aborted) throw error
  }
}

/** Low-priority reconciles hold no worker while they wait; this keeps all reconciles together within the number of workers. */
async function countedReconcile(loop: Loop, key: ObjectKey): Promise<ReconcileResult | undefined> {
  while (loop.active >= loop.workers) await new Promise<void>((resolve) => loop.forRoom.push(resolve))
  changeActive(loop, +1)
  const unfinished = await reconcileOnce(loop, key)
  changeActive(loop, -1)
  loop.forRoom.shift()?.()
  return unfinished
}

/** The result of a reconcile that left a deferred write; undefined when it is done, successfully or not. */
async function reconcileOnce(loop: Loop, key: ObjectKey): Promise<ReconcileResult | undefined> {
  const { name, queue, metrics, timer, signal } = loop
  const startedAtMs = timer.now().getTime()
  const observe = (result: Parameters<ControllerMetrics['reconciled']>[1]): void =>
    metrics?.reconciled(name, result, (timer.now().getTime() - startedAtMs) / 1000)
  // Not `key`: loggers censor a field of that name.
  const log = loop.log.child({ controller: name, object: key })
  try {
    const result = await loop.reconcile({ key, ...splitKey(key), signal, log })
    observe(result.requeueAfterMs === undefined ? 'success' : 'requeue_after')
    if (result.deferredWrite) return result
    succeeded(queue, key, result)
  } catch (error) {
    // After the abort an error is the abort itself, and there is no later try.
    if (signal.aborted) return undefined
    observe('error')
    failed(loop, key, error)
  }
  return undefined
}

async function runDeferredWrite(loop: Loop, key: ObjectKey, result: ReconcileResult): Promise<void> {
  const { priorities, queue, metrics, name, signal } = loop
  try {
    await priorities.low(async () => result.deferredWrite?.(), signal)
    succeeded(queue, key, result)
  } catch (error) {
    if (signal.aborted) return
    metrics?.reconciled(name, 'error', 0)
    failed(loop, key, error)
  }
}

function succeeded(queue: WorkQueue, key: ObjectKey, { requeueAfterMs }: ReconcileResult): void {
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
  // Another writer was first, and the next pass reads what it wrote: worth a word only where that does not end.
  const isUsual = isConflict(error) && retryInMs < lastingConflictMs
  about[isUsual ? 'debug' : 'warn']('reconcile failed', { error, retryInMs })
}

/** Pauses double from 5 ms: some eight conflicts in a row. */
const lastingConflictMs = 1_000

const isConflict = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === 'Conflict'

/** The pause a busy server asked for, where the error carries one. */
function retryAfterMs(error: unknown): number {
  if (typeof error !== 'object' || error === null || !('retryAfterMs' in error)) return 0
  return typeof error.retryAfterMs === 'number' ? error.retryAfterMs : 0
}

function changeActive(loop: Loop, by: number): void {
  loop.active += by
  loop.metrics?.activeWorkers(loop.name, loop.active)
}
