import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { ControllerMetrics } from './reconcile.js'

const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]
const queueBuckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000]

/**
 * Reports controllers and their queues under controller-runtime's metric names, so existing dashboards keep working.
 * Managers that share a registry share the series.
 */
export function promControllerMetrics(registry: Registry): ControllerMetrics & {
  /** Call once per controller, before its first pass, so that its series exist from the start. */
  announce(controller: string, workers: number): void
} {
  const registers = [registry]
  // What another manager registered before is the same metric: its name decides its type.
  const known = <M>(name: string): M | undefined => registry.getSingleMetric(name) as M | undefined
  const counter = (name: string, help: string, ...labelNames: string[]): Counter =>
    known<Counter>(name) ?? new Counter({ name, help, labelNames, registers })
  const gauge = (name: string, help: string, ...labelNames: string[]): Gauge =>
    known<Gauge>(name) ?? new Gauge({ name, help, labelNames, registers })
  const histogram = (name: string, help: string, buckets: number[], ...labelNames: string[]): Histogram =>
    known<Histogram>(name) ?? new Histogram({ name, help, buckets, labelNames, registers })

  const total = counter('controller_runtime_reconcile_total', 'Passes by outcome', 'controller', 'result')
  const errors = counter('controller_runtime_reconcile_errors_total', 'Passes that failed', 'controller')
  const time = histogram(
    'controller_runtime_reconcile_time_seconds',
    'Duration of a pass',
    reconcileBuckets,
    'controller',
  )
  const limit = gauge('controller_runtime_max_concurrent_reconciles', 'Passes that may run at once', 'controller')
  const active = gauge('controller_runtime_active_workers', 'Passes that run now', 'controller')
  const depth = gauge('workqueue_depth', 'Keys ready to be worked on', 'name', 'controller')
  const adds = counter('workqueue_adds_total', 'Keys added', 'name', 'controller')
  const waits = histogram('workqueue_queue_duration_seconds', 'Wait in the queue', queueBuckets, 'name', 'controller')
  const works = histogram('workqueue_work_duration_seconds', 'Time in a worker', queueBuckets, 'name', 'controller')
  const retries = counter('workqueue_retries_total', 'Keys added again after a failure', 'name', 'controller')
  const queue = (controller: string): { name: string; controller: string } => ({ name: controller, controller })

  // Looking labels up costs more than counting, and a busy controller counts thousands of times a second.
  const series = new Map<string, ReturnType<typeof resolve>>()
  const resolve = (controller: string) => ({
    success: total.labels({ controller, result: 'success' }),
    error: total.labels({ controller, result: 'error' }),
    requeue: total.labels({ controller, result: 'requeue' }),
    requeue_after: total.labels({ controller, result: 'requeue_after' }),
    errors: errors.labels({ controller }),
    time: time.labels({ controller }),
    active: active.labels({ controller }),
    depth: depth.labels(queue(controller)),
    adds: adds.labels(queue(controller)),
    waits: waits.labels(queue(controller)),
    works: works.labels(queue(controller)),
    retries: retries.labels(queue(controller)),
  })
  const of = (controller: string): ReturnType<typeof resolve> => {
    const known = series.get(controller) ?? resolve(controller)
    series.set(controller, known)
    return known
  }

  return {
    announce(controller, workers) {
      limit.set({ controller }, workers)
      const { active: running, errors: failures, depth: ready, adds: added, retries: again, ...counts } = of(controller)
      running.set(0)
      ready.set(0)
      for (const counter of [
        failures,
        added,
        again,
        counts.success,
        counts.error,
        counts.requeue,
        counts.requeue_after,
      ]) {
        counter.inc(0)
      }
    },
    reconciled(controller, result, seconds) {
      const counted = of(controller)
      counted[result].inc()
      if (result === 'error') counted.errors.inc()
      counted.time.observe(seconds)
      counted.works.observe(seconds)
    },
    queueDepth: (controller, length) => of(controller).depth.set(length),
    queued: (controller) => of(controller).adds.inc(),
    waited: (controller, seconds) => of(controller).waits.observe(seconds),
    retried: (controller) => of(controller).retries.inc(),
    activeWorkers: (controller, count) => of(controller).active.set(count),
  }
}
