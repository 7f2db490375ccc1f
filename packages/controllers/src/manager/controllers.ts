import { type EventSink, type KubeClient, silentRecorder } from '@corral/kube'
import type { Clock, Logger } from '@corral/ports'
import { controllerOf, Sandboxes } from '@corral/resources'
import {
  type ControllerMetrics,
  Expectations,
  type ObjectKey,
  type PriorityGate,
  type Reconcile,
  WorkQueue,
} from '@corral/runtime'
import type { Registry } from 'prom-client'
import { isAwaited, sandboxReconciler, watchPodWarnings, watchSandboxes } from '../sandbox/index.js'
import { claimReconciler, ObservedTimes, WarmQueue, watchClaims } from '../sandbox-claim/index.js'
import { templateReconciler, watchTemplates } from '../sandbox-template/index.js'
import { poolReconciler, watchPools } from '../sandbox-warm-pool/index.js'
import type { CoreState, ExtensionsState } from '../shared/cluster-state.js'
import { lifecycleMetrics } from '../shared/lifecycle-metrics.js'
import { claimMetrics } from '../shared/metrics.js'
import type { PoolLevels } from '../shared/pool-levels.js'
import type { Tracer } from '../shared/tracing.js'
import type { ManagerOptions } from './options.js'

/** A reconciler with the queue that wakes it. */
export interface Controller {
  name: string
  workers: number
  queue: WorkQueue
  reconcile: Reconcile
  /** Whether a reconcile of the key has low priority. */
  isLowPriority?(key: ObjectKey): boolean
  /** Ends what it watches besides the stores. */
  stop?(): Promise<void>
}

/** What the controllers of one manager share. */
export interface ControllerContext {
  client: KubeClient
  /** The same server for low-priority writes. */
  lowPriority: KubeClient
  levels: PoolLevels
  options: ManagerOptions
  priorities: PriorityGate
  clock: Clock
  core: CoreState
  sink: EventSink
  metrics: Registry
  controllerMetrics: ControllerMetrics
  log: Logger
  tracer: Tracer
  random: () => number
  signal: AbortSignal
}

/** Looks after Sandboxes. */
export function sandboxController(context: ControllerContext): Controller {
  const { client, levels, options, tracer, clock, core, sink, metrics, controllerMetrics } = context
  const queue = new WorkQueue({ name: 'sandbox', metrics: controllerMetrics })
  watchSandboxes(core, queue)
  const events = sink.recorder('sandbox-controller')
  const warnings = options.sandbox.explainNotReady ? podWarnings(context, queue) : undefined
  const lifecycle = options.sandbox.upstreamRelease?.lifecycleMetrics ? lifecycleMetrics(metrics, clock) : undefined
  const reconcile = sandboxReconciler({
    ...{ client, state: core, events, tracer, clock, lifecycle, warnings },
    options: options.sandbox,
  })
  return {
    name: 'sandbox',
    workers: options.workers.sandbox,
    queue,
    reconcile,
    isLowPriority(key) {
      const sandbox = core.sandboxes.get(key)
      return sandbox !== undefined && !isAwaited(sandbox, levels)
    },
    ...(warnings && { stop: () => warnings.stop() }),
  }
}

/** Wakes a Sandbox when the cluster complains about its Pod. */
function podWarnings(
  { client, log, core, signal }: ControllerContext,
  queue: WorkQueue,
): ReturnType<typeof watchPodWarnings> {
  return watchPodWarnings({
    ...{ client, log, signal },
    onChange({ namespace, name }) {
      const pod = core.pods.get(`${namespace}/${name}`)
      const owner = pod && controllerOf(pod)
      if (owner?.kind === Sandboxes.kind) queue.add(`${namespace}/${owner.name}`)
    },
  })
}

/** Looks after claims, templates and pools. */
export function extensionControllers(context: ControllerContext, state: CoreState & ExtensionsState): Controller[] {
  const { client, lowPriority, levels, options, priorities, tracer, clock, random, sink, metrics, controllerMetrics } =
    context
  const { workers } = options
  const queueOf = (name: string): WorkQueue => new WorkQueue({ name, metrics: controllerMetrics })

  const warm = new WarmQueue()
  const observed = new ObservedTimes(clock)
  const claimQueue = queueOf('sandboxclaim')
  watchClaims(state, claimQueue, warm, observed)
  const claims = claimReconciler({
    client,
    priorities,
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
    lowPriority,
    levels,
    state,
    expectations,
    events: sink.recorder('sandboxwarmpool-controller'),
    clock,
    random,
    options: options.pool,
  })
  return [
    { name: 'sandboxclaim', workers: workers.claim, queue: claimQueue, reconcile: claims },
    { name: 'sandboxtemplate', workers: workers.template, queue: templateQueue, reconcile: templates },
    { name: 'sandboxwarmpool', workers: workers.pool, queue: poolQueue, reconcile: pools },
  ]
}
