import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { eventSink, type KubeClient } from '@corral/kube'
import { type Clock, type Logger, silentLogger, systemClock } from '@corral/ports'
import { PriorityGate, promControllerMetrics, type RunningController, startController } from '@corral/runtime'
import { Registry } from 'prom-client'
import { type StateOptions, startCoreState, startExtensionsState } from '../shared/cluster-state.js'
import { poolSizeGauge } from '../shared/lifecycle-metrics.js'
import { sandboxGauge } from '../shared/metrics.js'
import { noPools, watchPoolLevels } from '../shared/pool-levels.js'
import { silentTracer, type Tracer } from '../shared/tracing.js'
import { type ControllerContext, extensionControllers, sandboxController } from './controllers.js'
import { lead, leaseName } from './election.js'
import { type Endpoints, startEndpoints } from './endpoints.js'
import { frameworkMetrics } from './framework-metrics.js'
import { lowPriorityClient } from './low-priority-client.js'
import type { ManagerOptions } from './options.js'

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
  /** Settles once the controllers run, which takes an election won where one is held; rejects on a stop before that. */
  readonly ready: Promise<void>
  /** Settles after a stop. Rejects when the election was lost: another manager acts, so this one must end. */
  readonly done: Promise<void>
  readonly metrics: Registry
  /** Where health and metrics are served, where they are. */
  readonly endpoints: Promise<Pick<Endpoints, 'metricsPort' | 'healthPort'>>
  /** Stops controllers, then watches, sends what events are left, gives up the lease. Safe to repeat; never rejects. */
  stop(): Promise<void>
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
  const framework = frameworkMetrics(metrics)
  const priorities = new PriorityGate({ lowConcurrency: options.lowPriorityConcurrency })
  const lowPriority = lowPriorityClient(client, priorities)
  const sink = eventSink({ client: lowPriority, clock, log, instance: hostname() })
  const stateOptions: StateOptions = {
    client,
    clock,
    log,
    signal: lifetime.signal,
    onlyLabelled: options.cacheLabelSelectors,
  }
  const core = startCoreState(stateOptions)
  const extensions = options.extensions ? startExtensionsState(stateOptions) : undefined
  const levels = extensions ? watchPoolLevels(core.sandboxes, extensions.pools) : noPools
  const stores = [...Object.values(core), ...Object.values(extensions ?? {})]
  const { upstreamRelease } = options.sandbox
  sandboxGauge(metrics, () => core.sandboxes.list(), {
    withOperatingMode: upstreamRelease?.operatingModeLabel === true,
  })
  if (upstreamRelease?.lifecycleMetrics) poolSizeGauge(metrics, () => core.sandboxes.list())

  const context: ControllerContext = {
    ...{ client, lowPriority, levels, options, priorities, clock, core, sink, metrics, controllerMetrics, log },
    tracer: ports.tracer ?? silentTracer,
    random: ports.random ?? Math.random,
    signal: lifetime.signal,
  }
  const controllers = [sandboxController(context)]
  if (extensions) controllers.push(...extensionControllers(context, { ...core, ...extensions }))

  const endpoints: Promise<Endpoints> = options.endpoints
    ? startEndpoints({ options: options.endpoints, metrics, clock, log, onCertificate: framework.certificateRead })
    : Promise.resolve({ stop: () => Promise.resolve() })

  async function act(signal: AbortSignal): Promise<void> {
    const running: RunningController[] = controllers.map((controller) =>
      startController({ ...controller, metrics: controllerMetrics, log, priorities, signal }),
    )
    log.info('controllers started', { controllers: controllers.map(({ name }) => name) })
    markReady()
    await Promise.all(running.map((controller) => controller.stopped))
  }

  async function run(): Promise<void> {
    for (const { name, workers, queue } of controllers) controllerMetrics.announce(name, workers, queue)
    await endpoints
    await Promise.all(stores.map((store) => store.synced))
    if (options.leaderElection)
      await lead({
        ...{ ...options.leaderElection, client, clock, log, act, signal: lifetime.signal },
        told: (isLeader) => framework.leads(leaseName, isLeader),
      })
    else await act(lifetime.signal)
  }

  let markReady = (): void => {}
  let failReady = (_error: unknown): void => {}
  const ready = new Promise<void>((resolve, reject) => {
    markReady = resolve
    failReady = reject
  })
  ready.catch(() => {}) // callers that await it get the error; a stop before the start is no failure
  async function live(): Promise<void> {
    try {
      await run()
    } catch (error) {
      if (!lifetime.signal.aborted) throw error
    } finally {
      failReady(new Error('the manager stopped before its controllers ran'))
      lifetime.abort()
      ports.signal?.removeEventListener('abort', abort)
      for (const { queue } of controllers) queue.close()
      await Promise.all(stores.map((store) => store.stop()))
      for (const { stop } of controllers) await stop?.()
      priorities.open()
      await sink.drain()
      await endpoints.then((open) => open.stop()).catch(() => {}) // a failure to open is what `done` reports
    }
  }

  const done = live()
  done.catch(() => {}) // callers that await `done` get the error

  return {
    ready,
    done,
    metrics,
    endpoints,
    stop() {
      lifetime.abort()
      return done.catch(() => {})
    },
  }
}
