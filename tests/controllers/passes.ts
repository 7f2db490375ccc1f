import { createApiServer, memoryStorage } from '@corral/apiserver'
import { defaultManagerOptions, type ManagerOptions } from '@corral/controllers'
import { type EventNote, inProcessKubeClient, type KubeClient } from '@corral/kube'
import { type ApiHandler, type ApiRequest, type ApiResponse, silentLogger } from '@corral/ports'
import {
  embeddedCrds,
  type KubeObject,
  NetworkPolicies,
  PersistentVolumeClaims,
  Pods,
  type ResourceKind,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
  Services,
  type Status,
  type Stored,
} from '@corral/resources'
import {
  Expectations,
  keyOf,
  type ObjectEvent,
  type ObjectKey,
  PriorityGate,
  type Reconcile,
  type ReconcileResult,
  WorkQueue,
} from '@corral/runtime'
import { Registry } from 'prom-client'
import { sandboxReconciler, watchSandboxes } from '../../packages/controllers/src/sandbox/index.js'
import {
  claimReconciler,
  ObservedTimes,
  WarmQueue,
  watchClaims,
} from '../../packages/controllers/src/sandbox-claim/index.js'
import { templateReconciler, watchTemplates } from '../../packages/controllers/src/sandbox-template/index.js'
import { poolReconciler, watchPools } from '../../packages/controllers/src/sandbox-warm-pool/index.js'
import {
  type CoreState,
  type ExtensionsState,
  indexes,
  slimPod,
} from '../../packages/controllers/src/shared/cluster-state.js'
import { type Store, withoutManagedFields } from '../../packages/controllers/src/shared/informed-store.js'
import { claimMetrics } from '../../packages/controllers/src/shared/metrics.js'
import { watchPoolLevels } from '../../packages/controllers/src/shared/pool-levels.js'
import { silentTracer } from '../../packages/controllers/src/shared/tracing.js'
import { namespace } from './cluster.js'

/** A write of the controllers: verb, what it hit, and its body. */
export interface Write {
  /** `POST pods`, `PATCH sandboxes/box/status` ... */
  what: string
  body: Record<string, unknown> | undefined
}

interface SnapshotStore<T extends KubeObject> extends Store<T> {
  refresh(client: KubeClient): Promise<void>
}

/** Controllers run pass by pass against a real API server, with the view, the clock and the faults in the test's hands. */
export interface Passes {
  [Symbol.asyncDispose](): Promise<void>
  /** The test's own client: not recorded, no faults. */
  readonly client: KubeClient
  readonly writes: Write[]
  readonly events: EventNote[]
  readonly warm: WarmQueue
  readonly expectations: Expectations
  readonly observed: ObservedTimes
  readonly metrics: Registry
  readonly queues: Record<'sandbox' | 'claim' | 'template' | 'pool', WorkQueue>
  nowMs: number
  /** Answers a request of the controllers in the server's place. */
  fault: ((request: ApiRequest) => ApiResponse | undefined) | undefined
  /** Brings the controllers' view up to date, with the events that a watch would have sent. */
  refresh(): Promise<void>
  sandbox(name: string, view?: View): Promise<ReconcileResult>
  claim(name: string, view?: View): Promise<ReconcileResult>
  template(name: string, view?: View): Promise<ReconcileResult>
  pool(name: string, view?: View): Promise<ReconcileResult>
  /** New reconcilers over the same server, as after a crash. */
  restart(): void
  /** Tells every running pass to stop. */
  cancel(reason: Error): void
}

/** `stale` runs a pass on the view of the pass before. */
export type View = 'fresh' | 'stale'

export async function startPasses(change?: (options: ManagerOptions) => void): Promise<Passes> {
  const server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds(), schedulesPods: false })
  await server.ready
  const client = inProcessKubeClient(server)
  const options = defaultManagerOptions()
  change?.(options)
  const recorded = inProcessKubeClient(recording(server))
  const events: EventNote[] = []
  const stop = new AbortController()
  let parts = build()

  const passes: Passes = {
    client,
    writes: [],
    events,
    fault: undefined,
    nowMs: Date.now(),
    get warm() {
      return parts.warm
    },
    get expectations() {
      return parts.expectations
    },
    get observed() {
      return parts.observed
    },
    get metrics() {
      return parts.metrics
    },
    get queues() {
      return parts.queues
    },
    async refresh() {
      for (const store of parts.stores) await store.refresh(client)
    },
    sandbox: (name, view) => pass(parts.sandbox, name, view),
    claim: (name, view) => pass(parts.claim, name, view),
    template: (name, view) => pass(parts.template, name, view),
    pool: (name, view) => pass(parts.pool, name, view),
    restart() {
      parts = build()
    },
    cancel: (reason) => stop.abort(reason),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await recorded.close()
      await client.close()
      await server.close()
    },
  }
  return passes

  async function pass(reconcile: Reconcile, name: string, view: View = 'fresh'): Promise<ReconcileResult> {
    if (view === 'fresh') await passes.refresh()
    const request = { key: `${namespace}/${name}`, namespace, name, signal: stop.signal, log: silentLogger }
    const { deferredWrite, ...result } = await reconcile(request)
    await deferredWrite?.()
    return result
  }

  function recording(handler: ApiHandler): ApiHandler {
    return {
      connect: (request) => handler.connect(request),
      async handle(request) {
        const fault = passes.fault?.(request)
        if (request.method !== 'GET') {
          const path = request.path.replace(/^.*\/namespaces\/[^/]+\//, '')
          passes.writes.push({ what: `${request.method} ${path}`, body: request.body as Write['body'] })
        }
        return fault ?? handler.handle(request)
      },
    }
  }

  function build() {
    const clock = { now: () => new Date(passes.nowMs) }
    const label = (key: string) => (object: Stored<KubeObject>) => object.metadata.labels?.[key] ?? ''
    const core = {
      sandboxes: snapshotStore(Sandboxes, { [indexes.warmPool]: label('agents.x-k8s.io/warm-pool-sandbox') }),
      pods: snapshotStore(Pods, { [indexes.nameHash]: label('agents.x-k8s.io/sandbox-name-hash') }, slimPod),
      services: snapshotStore(Services),
      pvcs: snapshotStore(PersistentVolumeClaims),
    } satisfies CoreState
    const extensions = {
      claims: snapshotStore(SandboxClaims, { [indexes.poolRef]: (claim) => claim.spec.warmPoolRef.name }),
      templates: snapshotStore(SandboxTemplates),
      pools: snapshotStore(SandboxWarmPools, { [indexes.templateRef]: (pool) => pool.spec.sandboxTemplateRef.name }),
      networkPolicies: snapshotStore(NetworkPolicies),
    } satisfies ExtensionsState
    const state = { ...core, ...extensions }
    const metrics = new Registry()
    const warm = new WarmQueue()
    const observed = new ObservedTimes(clock)
    const expectations = new Expectations(clock)
    const queues = {
      sandbox: new WorkQueue({ name: 'sandbox' }),
      claim: new WorkQueue({ name: 'claim' }),
      template: new WorkQueue({ name: 'template' }),
      pool: new WorkQueue({ name: 'pool' }),
    }
    watchSandboxes(state, queues.sandbox)
    watchClaims(state, queues.claim, warm, observed)
    watchTemplates(state, queues.template)
    watchPools(state, queues.pool, expectations)
    const recorder = { record: (_object: KubeObject, note: EventNote) => void events.push(note) }
    const silent = { record() {} }
    const levels = watchPoolLevels(state.sandboxes, state.pools)
    const shared = {
      client: recorded,
      lowPriority: recorded,
      levels,
      priorities: new PriorityGate(),
      state,
      clock,
      tracer: silentTracer,
    }
    return {
      stores: Object.values(state) as unknown as SnapshotStore<KubeObject>[],
      metrics,
      warm,
      observed,
      expectations,
      queues,
      sandbox: sandboxReconciler({ ...shared, events: recorder, options: options.sandbox }),
      claim: claimReconciler({
        ...shared,
        queue: warm,
        observed,
        events: options.claim.disableEvents ? silent : recorder,
        metrics: claimMetrics(metrics),
        options: options.claim,
      }),
      template: templateReconciler(shared),
      pool: poolReconciler({ ...shared, expectations, events: recorder, random: () => 0, options: options.pool }),
    }
  }
}

type Indexes<T extends KubeObject> = Record<string, (object: Stored<T>) => string>

/** A store that shows what the server had at the last `refresh`, own writes included only from then on. */
function snapshotStore<T extends KubeObject>(
  kind: ResourceKind<T>,
  by: Indexes<T> = {},
  transform: (object: Stored<T>) => Stored<T> = withoutManagedFields,
): SnapshotStore<T> {
  let objects = new Map<ObjectKey, Stored<T>>()
  const handlers: ((event: ObjectEvent<Stored<T>>) => void)[] = []
  const tell = (event: ObjectEvent<Stored<T>>): void => {
    for (const handler of handlers) handler(event)
  }
  return {
    kind,
    synced: Promise.resolve(),
    get: (key) => objects.get(key),
    list: () => [...objects.values()],
    byIndex: (index, value) =>
      [...objects.values()].filter((object) => `${object.metadata.namespace}/${by[index]?.(object)}` === value),
    onEvent: (handler) => void handlers.push(handler),
    remember: (object) => object,
    stop: () => Promise.resolve(),
    async refresh(client) {
      const { items } = await client.list(kind)
      const before = objects
      objects = new Map(items.map((item) => [keyOf(item), transform(item)]))
      for (const [key, object] of objects) {
        const old = before.get(key)
        if (old && old.metadata.uid !== object.metadata.uid) tell({ type: 'delete', object: old })
        if (!old || old.metadata.uid !== object.metadata.uid) tell({ type: 'add', object, isInitial: false })
        else if (old.metadata.resourceVersion !== object.metadata.resourceVersion) tell({ type: 'update', object, old })
      }
      for (const [key, object] of before) if (!objects.has(key)) tell({ type: 'delete', object })
    },
  }
}

/** A refusal as the API server would word it. */
export function refusal(code: number, reason: string, message = `${reason} made by the test`): ApiResponse {
  const value: Status = { apiVersion: 'v1', kind: 'Status', metadata: {}, status: 'Failure', reason, message, code }
  const json = (): string => JSON.stringify(value)
  return { status: code, headers: { 'content-type': 'application/json' }, body: { type: 'object', value, json } }
}

/** Answers matching requests with a refusal: the first `times` of them, or all. */
export function refuse(
  matches: (request: ApiRequest) => boolean,
  response: ApiResponse,
  times = Number.POSITIVE_INFINITY,
): (request: ApiRequest) => ApiResponse | undefined {
  let left = times
  return (request) => {
    if (left <= 0 || !matches(request)) return undefined
    left -= 1
    return response
  }
}

export const patchOf =
  (suffix: string) =>
  (request: ApiRequest): boolean =>
    request.method === 'PATCH' && request.path.endsWith(suffix)
