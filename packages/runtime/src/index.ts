export { type BackoffPolicy, backoffMs, itemBackoff } from './backoff.js'
export { type ControllerOptions, type RunningController, startController } from './controller.js'
export { promControllerMetrics } from './controller-metrics.js'
export {
  controllingOwner,
  type EventFilter,
  enqueueEvent,
  generationChanged,
  hasLabel,
  itself,
  type KeyMapping,
  labelled,
  type ObjectEvent,
} from './event-mapping.js'
export { Expectations } from './expectations.js'
export { type KeyedWorker, type KeyedWorkerOptions, keyedWorker } from './keyed-worker.js'
export { joinKey, keyOf, splitKey } from './object-key.js'
export { PriorityGate, type PriorityGateOptions } from './priority-gate.js'
export type * from './reconcile.js'
export { type SlowStartResult, slowStart } from './slow-start.js'
export { isTerminal, TerminalError } from './terminal-error.js'
export { systemTimer, type Timer } from './timer.js'
export { type AddOptions, WorkQueue, type WorkQueueOptions } from './work-queue.js'
