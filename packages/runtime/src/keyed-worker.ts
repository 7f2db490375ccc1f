import type { Logger } from '@corral/ports'
import type { BackoffPolicy } from './backoff.js'
import { startController } from './controller.js'
import type { ObjectKey } from './reconcile.js'
import { WorkQueue } from './work-queue.js'

export interface KeyedWorkerOptions {
  name: string
  /** Keys worked on at once. */
  workers: number
  /** Called for one key at a time; a call that throws is repeated after a growing pause. */
  work(key: ObjectKey, signal: AbortSignal): Promise<void>
  backoff?: BackoffPolicy
  log: Logger
}

/** A work queue with its loop, for work that needs neither requests nor results. */
export interface KeyedWorker {
  add(key: ObjectKey): void
  /** Adds the key once the time has passed, unless it is added earlier. */
  addAfter(key: ObjectKey, delayMs: number): void
  /** Settles when no key is ready or in hand; delayed keys and pending retries do not count. */
  idle(): Promise<void>
  /** Starts nothing more. Settles after the last call in hand. */
  close(): Promise<void>
}

const defaultBackoff: BackoffPolicy = { baseMs: 50, maxMs: 30_000 }

/** Keys added within one turn of the event loop enter the queue at its end: a burst about one key is one call. */
export function keyedWorker({ name, workers, work, backoff = defaultBackoff, log }: KeyedWorkerOptions): KeyedWorker {
  const ending = new AbortController()
  const queue = new WorkQueue({ name, backoff })
  const { stopped } = startController({
    name,
    workers,
    queue,
    log,
    signal: ending.signal,
    async reconcile({ key, signal }) {
      await work(key, signal)
      return {}
    },
  })
  const added = new Set<ObjectKey>()
  let turn: Promise<void> | undefined
  const endOfTurn = (): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(() => {
        turn = undefined
        for (const key of added) queue.add(key)
        added.clear()
        resolve()
      })
    })

  return {
    add(key) {
      if (ending.signal.aborted) return
      added.add(key)
      turn ??= endOfTurn()
    },
    addAfter: (key, delayMs) => queue.addAfter(key, delayMs),
    async idle() {
      while (turn !== undefined || !queue.isIdle) await (turn ?? queue.idle())
    },
    async close() {
      ending.abort()
      added.clear()
      await stopped
    },
  }
}
