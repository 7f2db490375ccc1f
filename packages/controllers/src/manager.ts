import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import type { KubeClient } from '@corral/kube'
import { type Clock, type Logger, silentLogger, systemClock } from '@corral/resources'
import {
  type ControllerMetrics,
  Expectations,
  promControllerMetrics,
  type Reconcile,
  type RunningController,
  startController,
  WorkQueue,
} from '@corral/runtime'
import { Registry } from 'prom-client'
import {
  type CoreState,
  type ExtensionsState,
  type StateOptions,
  startCoreState,
  startExtensionsState,
} from './cluster-state.js'
import { type EventSink, eventSink, silentRecorder } from './event-recorder.js'
import type { ManagerOptions } from './manager-options.js'
import { claimMetrics, sandboxGauge } from './metrics.js'
import { sandboxReconciler, watchSandboxes } from './sandbox/index.js'
import { claimReconciler, ObservedTimes, WarmQueue, watchClaims } from './sandbox-claim/index.js'
import { templateReconciler, watchTemplates } from './sandbox-template/index.js'
import { poolReconciler, watchPools } from './sandbox-warm-pool/index.js'
import { silentTracer, type Tracer } from './tracing.js'

export interface ManagerPorts {
  client: KubeClient
  options: ManagerOptions
  clock?: Clock
  log?: Logger
  /** Where metrics are registered; one of its own without it. */
  metrics?: Registry
  tracer?: Tracer
  random?: () => number
  /** Aborting it stops the manager as `stop` does. */
  signal?: AbortSignal
}

export interface Manager {
  /** Settles once the stores are filled and the controllers run; rejects when the manager stops before that. */
  readonly ready: Promise<void>
  readonly metrics: Registry
  /** Stops controllers, then watches, then sends what events are left. Safe to repeat. */
  stop(): Promise<void>
}

interface Controller {
  name: string
  workers: number
  queue: WorkQueue
  reconcile: Reconcile
}

/** Runs the reconcilers over one API server. */
export function startManager(ports: ManagerPorts): Manager {
  const { client, options } = ports
  const clock = ports.clock ?? systemClock
  const log = ports.log ?? silentLogger
  const metrics = ports.metrics ?? new Registry()
  const lifetime = new AbortController()
  setMaxListeners(0, lifetime.signal) // every call in flight listens to it
  const abort = (): void => lifetime.abort(ports.signal?.reason)
  if (ports.signal?.aborted) abort()
  else ports.signal?.addEventListener('abort', abort, { once: true })

  const controllerMetrics = promControllerMetrics(metrics)
  const sink = eventSink({ client, clock, log, instance: hostname() })
  const stateOptions: StateOptions = {
    client,
    clock,
    log,
    signal: lifetime.signal,
    onlyLabelled: options.cacheLabelSelectors,
  }
  const core = startCoreState(stateOptions)
  const extensions = options.extensions ? startExtensionsState(stateOptions) : undefined
  const stores = [...Object.values(core), ...Object.values(extensions ?? {})]
  sandboxGauge(metrics, () => core.sandboxes.list())

  const context: Context = { ports, clock, core, sink, metrics, controllerMetrics }
  const controllers = [sandboxController(context)]
  if (extensions) controllers.push(...extensionControllers(context, { ...core, ...extensions }))

  let running: RunningController[] = []
  const ready = Promise.all(stores.map((store) => store.synced)).then(() => {
    lifetime.signal.throwIfAborted()
    running = controllers.map(({ name, workers, queue, reconcile }) => {
      controllerMetrics.announce(name, workers)
      const child = log.child({ controller: name })
      return startController({
        name,
        workers,
        queue,
        reconcile,
        metrics: controllerMetrics,
        log: child,
        signal: lifetime.signal,
      })
    })
    log.info('controllers started', { controllers: controllers.map(({ name }) => name) })
  })
  ready.catch(() => {}) // whoever waits sees it; a stop before the start is no accident

  let stopped: Promise<void> | undefined
  async function shutDown(): Promise<void> {
    lifetime.abort()
    ports.signal?.removeEventListener('abort', abort)
    for (const { queue } of controllers) queue.close()
    await Promise.allSettled([ready, ...running.map((controller) => controller.stopped)])
    await Promise.all(stores.map((store) => store.stop()))
    await sink.drain()
  }
  const stop = (): Promise<void> => {
    stopped ??= shutDown()
    return stopped
  }
  return { ready, metrics, stop }
}

interface Context {
  ports: ManagerPorts
  clock: Clock
  core: CoreState
  sink: EventSink
  metrics: Registry
  controllerMetrics: ControllerMetrics
}

function sandboxController({ ports, clock, core, sink, controllerMetrics }: Context): Controller {
  const { client, options, tracer = silentTracer } = ports
  const queue = new WorkQueue({ name: 'sandbox', metrics: controllerMetrics })
  watchSandboxes(core, queue)
  const events = sink.recorder('sandbox-controller')
  const reconcile = sandboxReconciler({ client, state: core, events, tracer, clock, options: options.sandbox })
  return { name: 'sandbox', workers: options.workers.sandbox, queue, reconcile }
}

function extensionControllers(context: Context, state: CoreState & ExtensionsState): Controller[] {
  const { ports, clock, sink, metrics, controllerMetrics } = context
  const { client, options, tracer = silentTracer } = ports
  const { workers } = options
  const queueOf = (name: string): WorkQueue => new WorkQueue({ name, metrics: controllerMetrics })

  const warm = new WarmQueue()
  const observed = new ObservedTimes(clock)
  const claimQueue = queueOf('sandboxclaim')
  watchClaims(state, claimQueue, warm, observed)
  const claims = claimReconciler({
    client,
    state,
    queue: warm,
    observed,
    events: options.claim.disableEvents ? silentRecorder : sink.recorder('sandboxclaim-controller'),
    metrics: claimMetrics(metrics),
    tracer,
    clock,
    options: options.claim,
  })

  const templateQueue = queueOf('sandboxtemplate')
  watchTemplates(state, templateQueue)
  const templates = templateReconciler({ client, state, tracer })

  const expectations = new Expectations(clock)
  const poolQueue = queueOf('sandboxwarmpool')
  watchPools(state, poolQueue, expectations)
  const pools = poolReconciler({
    client,
    state,
    expectations,
    events: sink.recorder('sandboxwarmpool-controller'),
    clock,
    random: ports.random ?? Math.random,
    options: options.pool,
  })
  return [
    { name: 'sandboxclaim', workers: workers.claim, queue: claimQueue, reconcile: claims },
    { name: 'sandboxtemplate', workers: workers.template, queue: templateQueue, reconcile: templates },
    { name: 'sandboxwarmpool', workers: workers.pool, queue: poolQueue, reconcile: pools },
  ]
}
