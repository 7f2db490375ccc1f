import type { Logger } from '@corral/resources'

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
   * The rest of the pass, which nobody waits for: it runs when its turn comes, without keeping a worker, and its failure is
   * the pass's. The key stays taken until it has ended.
   */
  later?: () => Promise<void>
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
  /** A pass failed with a `TerminalError`. */
  gaveUp(controller: string): void
  activeWorkers(controller: string, count: number): void
}
