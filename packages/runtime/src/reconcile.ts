import type { Logger } from '@corral/ports'

/** `namespace/name`, or just `name` for cluster-scoped objects. */
export type ObjectKey = string

export interface ReconcileRequest {
  readonly key: ObjectKey
  readonly namespace: string
  readonly name: string
  readonly signal: AbortSignal
  readonly log: Logger
}

export interface ReconcileResult {
  /** Look again after this time; absent: rest until the next event. */
  requeueAfterMs?: number
  /**
   * A write at low priority that completes this reconcile. It holds no worker while it waits for its turn; the key stays taken until
   * it has ended, and its failure counts as the reconcile's.
   */
  deferredWrite?: () => Promise<void>
}

/**
 * Moves one object a step closer to what it should be. Throwing means "try again, with backoff". Never called twice at
 * once for the same key.
 */
export type Reconcile = (request: ReconcileRequest) => Promise<ReconcileResult>

/** What the controller loop needs from a metrics registry; every method may be a no-op. */
export interface ControllerMetrics {
  reconciled(controller: string, result: 'success' | 'error' | 'requeue' | 'requeue_after', seconds: number): void
  /** Keys of one priority that are ready. */
  queueDepth(controller: string, depth: number, priority: 'normal' | 'low'): void
  queued(controller: string): void
  waited(controller: string, seconds: number): void
  retried(controller: string): void
  /** A reconcile failed with a `TerminalError`. */
  gaveUp(controller: string): void
  activeWorkers(controller: string, count: number): void
}
