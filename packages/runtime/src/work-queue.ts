import { type BackoffPolicy, backoffMs, itemBackoff } from './backoff.js'
import { Fifo } from './fifo.js'
import type { ControllerMetrics, ObjectKey } from './reconcile.js'
import { systemTimer, type Timer } from './timer.js'

export interface WorkQueueOptions {
  /** Label of the queue's metrics; also the controller's name. */
  name: string
  timer?: Timer
  backoff?: BackoffPolicy
  metrics?: ControllerMetrics
}

export interface AddOptions {
  /** `low` waits behind everything else: the objects that already existed at start. A later normal add raises it. */
  priority?: 'normal' | 'low'
}

interface ReadyEntry {
  addedAtMs: number
  priority: 'normal' | 'low'
}

interface DelayedEntry {
  dueAtMs: number
  cancel: () => void
}

/**
 * Hands out keys to workers, one worker per key at a time. A key added while it is being worked on runs once more
 * afterwards; added ten times before that, it still runs once. Of a delayed and an immediate add the earlier counts.
 * After `close` nothing is handed out and every waiting `next` resolves to `undefined`.
 */
export class WorkQueue {
  readonly name: string
  readonly #timer: Timer
  readonly #backoff: BackoffPolicy
  readonly #metrics: ControllerMetrics | undefined
  readonly #ready = new Map<ObjectKey, ReadyEntry>()
  readonly #order = { normal: new Fifo<ObjectKey>(), low: new Fifo<ObjectKey>() }
  readonly #readyOf = { normal: 0, low: 0 }
  /** Keys in a worker's hands, and since when. */
  readonly #working = new Map<ObjectKey, number>()
  /** Keys added while a worker holds them; they become ready when it lets go. */
  readonly #again = new Map<ObjectKey, 'normal' | 'low'>()
  readonly #delayed = new Map<ObjectKey, DelayedEntry>()
  readonly #failures = new Map<ObjectKey, number>()
  readonly #idlers = new Fifo<() => void>()
  readonly #waiters = new Fifo<(key: ObjectKey | undefined) => void>()
  #closed = false

  constructor(options: WorkQueueOptions) {
    this.name = options.name
    this.#timer = options.timer ?? systemTimer
    this.#backoff = options.backoff ?? itemBackoff
    this.#metrics = options.metrics
  }

  /** Keys ready to be handed out; neither delayed ones nor those in a worker's hands. */
  get length(): number {
    return this.#ready.size
  }

  /** Keys that wait for their time. */
  get delayedCount(): number {
    return this.#delayed.size
  }

  /** No key is ready or in a worker's hands. */
  get isIdle(): boolean {
    return this.#ready.size === 0 && this.#working.size === 0
  }

  /** Settles when the queue is next idle, at once if it is; a key may have been added again by then. */
  idle(): Promise<void> {
    if (this.isIdle) return Promise.resolve()
    return new Promise((resolve) => this.#idlers.push(resolve))
  }

  /** For how many seconds each key has been in a worker's hands. */
  unfinishedSeconds(): number[] {
    const nowMs = this.#nowMs()
    return [...this.#working.values()].map((sinceMs) => (nowMs - sinceMs) / 1000)
  }

  /** Makes the key ready now. */
  add(key: ObjectKey, options: AddOptions = {}): void {
    if (this.#closed) return
    this.#dropDelayed(key)
    const priority = options.priority ?? 'normal'
    if (this.#working.has(key)) {
      if (this.#again.get(key) !== 'normal') this.#again.set(key, priority)
      return
    }
    const known = this.#ready.get(key)
    if (known && (known.priority === 'normal' || priority === 'low')) return
    // A raised key stays in the low list too; when its turn comes there, it is no longer queued and is skipped.
    this.#ready.set(key, { addedAtMs: known?.addedAtMs ?? this.#nowMs(), priority })
    this.#order[priority].push(key)
    if (known) this.#count(known.priority, -1)
    else this.#metrics?.queued(this.name)
    this.#count(priority, +1)
    this.#wakeOne()
  }

  /** Makes the key ready once `delayMs` have passed, unless it is or becomes ready earlier. */
  addAfter(key: ObjectKey, delayMs: number): void {
    if (delayMs <= 0) {
      this.add(key)
      return
    }
    if (this.#closed || this.#ready.has(key) || this.#again.has(key)) return
    const dueAtMs = this.#nowMs() + delayMs
    const known = this.#delayed.get(key)
    if (known && known.dueAtMs <= dueAtMs) return
    known?.cancel()
    this.#delayed.set(key, { dueAtMs, cancel: this.#timer.after(delayMs, () => this.add(key)) })
  }

  /** Another try after a failure: the pause doubles with every call until `forget`. Returns the pause. */
  addRateLimited(key: ObjectKey, atLeastMs = 0): number {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    const delayMs = Math.max(atLeastMs, backoffMs(failures, this.#backoff))
    this.#metrics?.retried(this.name)
    this.addAfter(key, delayMs)
    return delayMs
  }

  /** Failures counted since the last `forget`. */
  failures(key: ObjectKey): number {
    return this.#failures.get(key) ?? 0
  }

  /** The key is healthy again: its next failure starts with the shortest pause. */
  forget(key: ObjectKey): void {
    this.#failures.delete(key)
  }

  /** The next key, now in the caller's hands until `done`. `undefined` once the queue is closed. */
  next(): Promise<ObjectKey | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    const key = this.#take()
    if (key !== undefined) return Promise.resolve(key)
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  /** The worker lets go of the key. */
  done(key: ObjectKey): void {
    this.#working.delete(key)
    const priority = this.#again.get(key)
    this.#again.delete(key)
    if (priority !== undefined) this.add(key, { priority })
    if (this.isIdle) this.#releaseIdlers()
  }

  /** Ends the queue: cancels delayed keys and lets all waiters go. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const { cancel } of this.#delayed.values()) cancel()
    this.#delayed.clear()
    this.#ready.clear()
    if (this.isIdle) this.#releaseIdlers()
    for (let waiter = this.#waiters.shift(); waiter; waiter = this.#waiters.shift()) waiter(undefined)
  }

  #releaseIdlers(): void {
    for (let idler = this.#idlers.shift(); idler; idler = this.#idlers.shift()) idler()
  }

  #wakeOne(): void {
    if (this.#waiters.size === 0) return
    const key = this.#take()
    if (key !== undefined) this.#waiters.shift()?.(key)
  }

  #take(): ObjectKey | undefined {
    for (const priority of ['normal', 'low'] as const) {
      const order = this.#order[priority]
      for (let key = order.shift(); key !== undefined; key = order.shift()) {
        const entry = this.#ready.get(key)
        if (!entry || entry.priority !== priority) continue
        this.#ready.delete(key)
        const nowMs = this.#nowMs()
        this.#working.set(key, nowMs)
        this.#count(priority, -1)
        this.#metrics?.waited(this.name, (nowMs - entry.addedAtMs) / 1000)
        return key
      }
    }
    return undefined
  }

  #count(priority: 'normal' | 'low', by: number): void {
    this.#readyOf[priority] += by
    this.#metrics?.queueDepth(this.name, this.#readyOf[priority], priority)
  }

  #dropDelayed(key: ObjectKey): void {
    this.#delayed.get(key)?.cancel()
    this.#delayed.delete(key)
  }

  #nowMs(): number {
    return this.#timer.now().getTime()
  }
}
