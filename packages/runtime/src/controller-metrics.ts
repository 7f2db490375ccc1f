import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { ControllerMetrics } from './reconcile.js'
import type { WorkQueue } from './work-queue.js'

const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]
/** Each ten times the one before, multiplied as upstream does it: dashboards match bounds to the last digit. */
const queueBuckets = Array.from({ length: 11 }).reduce<number[]>(
  (bounds) => [...bounds, (bounds.at(-1) ?? 0) * 10],
  [1e-8],
)
/** Queues by controller: controllers with one registry share the gauges computed from them. */
const workingOf = new WeakMap<Registry, Map<string, Pick<WorkQueue, 'unfinishedSeconds'>>>()
/** How upstream's queue numbers its priorities. */
const priorities = { normal: '0', low: '-100' } as const

/**
 * Reports controllers and their queues under controller-runtime's metric names, so existing dashboards keep working.
 * Managers that share a registry share the series.
 */
export function promControllerMetrics(registry: Registry): ControllerMetrics & {
  /** Call once per controller, before its first pass, so that its series exist from the start. */
  announce(controller: string, workers: number, queue: Pick<WorkQueue, 'unfinishedSeconds'>): void
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
  const panics = counter(
    'controller_runtime_reconcile_panics_total',
    'Always 0: a pass that throws failed',
    'controller',
  )
  const timeouts = counter(
    'controller_runtime_reconcile_timeouts_total',
    'Always 0: passes have no deadline',
    'controller',
  )
  const terminal = counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Passes that failed for good',
    'controller',
  )
  const depth = gauge('workqueue_depth', 'Keys ready to be worked on', 'name', 'controller', 'priority')
  const adds = counter('workqueue_adds_total', 'Keys added', 'name', 'controller')
  const waits = histogram('workqueue_queue_duration_seconds', 'Wait in the queue', queueBuckets, 'name', 'controller')
  const works = histogram('workqueue_work_duration_seconds', 'Time in a worker', queueBuckets, 'name', 'controller')
  const retries = counter('workqueue_retries_total', 'Keys added again after a failure', 'name', 'controller')
  const working = workingOf.get(registry) ?? new Map<string, Pick<WorkQueue, 'unfinishedSeconds'>>()
  workingOf.set(registry, working)
  const unfinished = (name: string, help: string, of: (seconds: number[]) => number): void => {
    if (known(name)) return
    const figure: Gauge = new Gauge({
      name,
      help,
      labelNames: ['name', 'controller'],
      registers,
      collect() {
        for (const [controller, keys] of working) figure.set(queue(controller), of(keys.unfinishedSeconds()))
      },
    })
  }
  unfinished('workqueue_unfinished_work_seconds', 'Time in workers so far, of all keys together', (all) =>
    all.reduce((sum, seconds) => sum + seconds, 0),
  )
  unfinished('workqueue_longest_running_processor_seconds', 'Time in a worker so far, of the slowest key', (all) =>
    Math.max(0, ...all),
  )
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
    normal: depth.labels({ ...queue(controller), priority: priorities.normal }),
    low: depth.labels({ ...queue(controller), priority: priorities.low }),
    terminal: terminal.labels({ controller }),
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
    announce(controller, workers, keys) {
      limit.set({ controller }, workers)
      working.set(controller, keys)
      const { active: running, errors: failures, normal, adds: added, retries: again, ...counts } = of(controller)
      running.set(0)
      normal.set(0)
      for (const counter of [
        failures,
        added,
        again,
        counts.terminal,
        panics.labels({ controller }),
        timeouts.labels({ controller }),
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
    queueDepth: (controller, length, priority) => of(controller)[priority].set(length),
    gaveUp: (controller) => of(controller).terminal.inc(),
    queued: (controller) => of(controller).adds.inc(),
    waited: (controller, seconds) => of(controller).waits.observe(seconds),
    retried: (controller) => of(controller).retries.inc(),
    activeWorkers: (controller, count) => of(controller).active.set(count),
  }
}
