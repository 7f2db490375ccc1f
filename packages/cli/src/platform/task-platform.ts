import type { ConnectionOptions } from '@corral/agent-sandbox-sdk'
import type { KubeClient } from '@corral/kube'
import type { Clock, Logger, SpanSink } from '@corral/ports'
import type { GitIdentity, SandboxProviderName, Settings } from '@corral/protocol'
import type { HttpServer } from '@corral/server'
import {
  type Confine,
  createModelProviders,
  directoryTaskRecords,
  type ElectedOptions,
  type ElectionOptions,
  fileEndpointStore,
  fileProviderStore,
  fileSecretStore,
  type ModelProviders,
  type ProviderStore,
  promTaskMetrics,
  type SandboxPlaces,
  type TaskMetrics,
  type TaskRecords,
} from '@corral/tasks'
import type { Registry } from 'prom-client'
import { chosenProviderName, withChosenProvider } from './chosen-provider.js'
import type { DataDirectory, Ports } from './data-directory.js'
import { otlpTarget, startOtlpExporter } from './otlp-spans.js'
import { settingsStoreOf } from './platform-settings.js'
import { createSandboxPlaces } from './sandbox-places.js'
import { startControllerPart, type TaskControllerPart } from './task-controller-part.js'
import { startHttpPart } from './task-http-part.js'

/** `http` answers requests and keeps no state; `controller` reconciles tasks and holds the model broker. */
export const taskParts = ['http', 'controller'] as const
export type TaskPart = (typeof taskParts)[number]

export interface TaskPlatformOptions {
  client: KubeClient
  directory: DataDirectory
  env: NodeJS.ProcessEnv
  httpHost?: string
  httpPort: number
  /** Host names the HTTP API answers to besides those of loopback. */
  allowedHosts?: readonly string[]
  brokerHost?: string
  brokerPort: number
  remembered: Ports
  token: string
  /** Signs the tokens agents show the broker; one of the data directory where left out. */
  brokerSecret?: string
  /** Which process reconciles where several serve one API. */
  election: ElectionOptions
  maxConcurrent: number
  /** Sandboxes of ended tasks that may be held for follow-ups at once. */
  maxHeld?: number
  defaultAgent: string
  /** What the platform's own sandboxes are called among providers. */
  ownProvider: 'embedded' | 'kubernetes'
  /** The provider of tasks that name none. */
  defaultProvider?: string
  /** Whether tasks may name repositories on this machine's disk. */
  localRepositories: boolean
  /** See `TaskServiceOptions`. */
  findIdentity?(path: string | undefined): Promise<GitIdentity | undefined>
  /** See `TaskServiceOptions`. */
  isInstalled?(program: string): Promise<boolean>
  isolation?: string
  /** See `ElectedOptions`. */
  snapshots?: ElectedOptions['snapshots']
  /** What snapshots of environments may take on the disk. */
  snapshotBudgetBytes?: number
  /** See `TaskControllerOptions`. */
  hasEgressByName?: boolean
  /** How sandboxes are reached; through the API server where left out. */
  connection?: ConnectionOptions
  /** How git is started on what a sandbox sent; as it is where left out. */
  confine?: Confine | undefined
  /** See `TaskControllerOptions`. */
  onSandboxesNeeded?(until: Date | undefined): void
  registry: Registry
  namespace?: string
  /** What sandboxes run on; this machine where left out. `isGiven`: it was named at the start and no setting changes it. */
  runsOn?: { provider: SandboxProviderName; context?: string; namespace?: string; isGiven?: boolean }
  isReady: () => boolean
  /** What is wrong with the disk, while something is. */
  diskProblem?: () => string | undefined
  clock: Clock
  log: Logger
}

/** What the parts of one process share. */
export interface TaskShared {
  records: TaskRecords
  providers: ModelProviders
  metrics: TaskMetrics
  places: SandboxPlaces
  providerStore: ProviderStore
  /** Where spans go; undefined where no collector is configured. */
  spans: SpanSink | undefined
}

export interface RunningTaskParts {
  readonly http: HttpServer | undefined
  readonly controller: TaskControllerPart | undefined
  /** Settles once tasks are reconciled, here or by the process that leads. */
  readonly ready: Promise<void>
  /** Leaves every task as it is. Safe to repeat. */
  stop(): Promise<void>
}

/** How often a process that only answers requests looks for events that the controller's process has written. */
const followMs = 250

/** Starts the parts that are asked for; what was started is stopped again when a later one fails. */
export async function startTaskParts(
  parts: ReadonlySet<TaskPart>,
  given: TaskPlatformOptions,
): Promise<RunningTaskParts> {
  const { settings } = await settingsStoreOf(given).read()
  const options = withChoice(given, settings)
  const stops: (() => Promise<void>)[] = []
  const stop = async (): Promise<void> => {
    for (let next = stops.pop(); next; next = stops.pop()) await next()
  }
  const { directory, env, clock, log } = options
  const target = otlpTarget(env)
  const exporter = target && startOtlpExporter(target, { log })
  // Stopped last: the other parts tell of what they end.
  if (exporter) stops.push(() => exporter.close())
  const secrets = fileSecretStore(directory.secrets)
  const isReader = !parts.has('controller')
  let broker: { host: string; port: number } | undefined
  const providerStore = withChosenProvider(fileProviderStore(directory.providers), settings)
  const places = createSandboxPlaces({
    store: providerStore,
    own: options.ownProvider,
    fallback: options.defaultProvider,
    broker() {
      if (!broker) throw new Error('the broker of this process does not listen')
      return broker
    },
    log: options.log,
  })
  const shared: TaskShared = {
    places,
    providerStore,
    records: directoryTaskRecords({
      directory: directory.tasks,
      now: () => clock.now(),
      ...(isReader ? { pollMs: followMs } : {}),
    }),
    providers: createModelProviders({ endpoints: fileEndpointStore(directory.endpoints), secrets, env }),
    metrics: promTaskMetrics(options.registry),
    spans: exporter?.sink,
  }
  stops.push(
    () => shared.records.close(),
    () => places.close(),
  )
  try {
    const controller = parts.has('controller') ? await startControllerPart(options, shared) : undefined
    if (controller) {
      // An address that stands for all of them is reached on loopback.
      const { host, port } = controller.broker
      broker = { host: /^(0\.0\.0\.0|::)$/.test(host) ? '127.0.0.1' : host, port }
      stops.push(
        () => controller.broker.close(),
        () => controller.stop(),
      )
    }
    const http = parts.has('http') ? await startHttpPart(options, shared, controller) : undefined
    // The controller stops first, and also when the HTTP API cannot listen: its lease would keep the process up.
    if (http) stops.splice(controller ? -1 : stops.length, 0, () => http.close())
    return { http, controller, ready: controller?.ready ?? Promise.resolve(), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Tasks, broker and HTTP API in one process: the same in `corral up` and in a cluster. */
export interface TaskPlatform extends RunningTaskParts {
  readonly http: HttpServer
  readonly controller: TaskControllerPart
}

export async function startTaskPlatform(options: TaskPlatformOptions): Promise<TaskPlatform> {
  const { http, controller, ...running } = await startTaskParts(new Set(taskParts), options)
  if (!http || !controller) throw new TypeError('both parts were asked for')
  return { ...running, http, controller }
}

/** With what was chosen under Settings, where nothing else was said at the start. */
function withChoice(options: TaskPlatformOptions, settings: Settings): TaskPlatformOptions {
  if (options.ownProvider !== 'embedded' || options.defaultProvider || settings.provider !== 'kubernetes')
    return options
  const { context, namespace } = settings
  return {
    ...options,
    defaultProvider: chosenProviderName,
    runsOn: { provider: 'kubernetes', ...(context ? { context } : {}), ...(namespace ? { namespace } : {}) },
  }
}
