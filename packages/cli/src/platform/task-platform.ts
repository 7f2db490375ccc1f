import { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import type { KubeClient } from '@corral/kube'
import type { Clock, Logger } from '@corral/resources'
import { promControllerMetrics } from '@corral/runtime'
import { createApp, type HttpServer, listen } from '@corral/server'
import {
  type Broker,
  brokeredTask,
  createGit,
  createRepository,
  createTaskService,
  createTaskTokens,
  createUsageRecord,
  fileEventLog,
  fileSecretStore,
  type Provider,
  promTaskMetrics,
  providers,
  type SandboxAccess,
  sdkSandboxAccess,
  startBroker,
  startTaskController,
  type TaskController,
  writeGlobalConfig,
} from '@corral/tasks'
import type { Registry } from 'prom-client'
import { version } from '../version.js'
import { type DataDirectory, ensureSecret, type Ports } from './data-directory.js'
import { listenRemembered } from './free-port.js'
import { brokerService, brokerServicePort, platformNamespace } from './names.js'

export interface TaskPlatformOptions {
  client: KubeClient
  directory: DataDirectory
  env: NodeJS.ProcessEnv
  httpHost?: string
  httpPort: number
  brokerHost?: string
  brokerPort: number
  remembered: Ports
  token: string
  maxConcurrent: number
  defaultAgent: string
  /** Whether tasks may name repositories on this machine's disk. */
  localRepositories: boolean
  isolation?: string
  registry: Registry
  namespace?: string
  isReady: () => boolean
  clock: Clock
  log: Logger
}

/** Tasks, broker and HTTP API on any Kubernetes API server: the same in `corral up` and in a cluster. */
export interface TaskPlatform {
  readonly http: HttpServer
  readonly broker: Broker
  readonly controller: TaskController
  /** Starts reconciling; until then tasks are accepted and wait. */
  readonly ready: Promise<void>
  /** Whether any task waits or runs. */
  isBusy(): boolean
  /** Safe to repeat. */
  stop(options: { graceMs: number }): Promise<void>
}

/** Starts the parts one after the other; what was started is stopped again when a later one fails. */
export async function startTaskPlatform(options: TaskPlatformOptions): Promise<TaskPlatform> {
  const stops: ((graceMs: number) => Promise<void>)[] = []
  const stopAll = async (graceMs: number): Promise<void> => {
    for (let stop = stops.pop(); stop; stop = stops.pop()) await stop(graceMs)
  }
  try {
    return await assemble(options, stops, stopAll)
  } catch (error) {
    await stopAll(0)
    throw error
  }
}

async function assemble(
  options: TaskPlatformOptions,
  stops: ((graceMs: number) => Promise<void>)[],
  stopAll: (graceMs: number) => Promise<void>,
): Promise<TaskPlatform> {
  const { client, directory, env, clock, log, registry } = options
  const namespace = options.namespace ?? platformNamespace
  const secrets = fileSecretStore(directory.secrets)
  const tokens = createTaskTokens(ensureSecret(directory, 'secrets/broker-token-secret'))
  const eventLog = fileEventLog({ directory: directory.tasks, now: () => clock.now() })
  stops.push(() => eventLog.close())
  const usage = createUsageRecord(eventLog)
  const findKey = async (provider: Provider): Promise<string | undefined> =>
    (await secrets.find(provider.secret)) ?? env[provider.keyVariable]
  const git = createGit({ globalConfig: await writeGlobalConfig(directory.git, env), env })
  const metrics = promTaskMetrics(registry)
  const sandboxes: SandboxAccess = sdkSandboxAccess(new AgentSandboxClient({ client, namespace }))

  const controller = startTaskController({
    client,
    namespace,
    sandboxes,
    repository: createRepository({ git, mirrorsDirectory: directory.mirrors }),
    eventLog,
    usage,
    broker: { baseUrl: `http://${brokerService}:${brokerServicePort}`, tokenFor: (uid) => tokens.issue(uid) },
    async hasModelKey(name) {
      const provider = providers.get(name)
      return provider ? (await findKey(provider)) !== undefined : false
    },
    directory: directory.tasks,
    maxConcurrent: options.maxConcurrent,
    ...(options.isolation ? { isolation: options.isolation } : {}),
    metrics: { ...metrics, controller: promControllerMetrics(registry) },
    clock,
    log,
  })
  // While tasks are brought to their end their agents still need the broker and their readers the HTTP API.
  stops.push((graceMs) => controller.stop({ graceMs }))
  controller.ready.catch(() => undefined) // whoever starts the platform looks at it
  const broker = await listenRemembered(options.brokerPort, options.remembered.broker, (port) =>
    startBroker({
      tokens,
      async findTask(uid) {
        const task = controller.tasks.byIndex('uid', uid)[0]
        return task ? brokeredTask(task, await usage.total(uid)) : undefined
      },
      findKey,
      baseUrlOf: (provider) => env[provider.baseUrlVariable] ?? provider.defaultBaseUrl,
      recordUsage: (uid, counted) => {
        usage.add(uid, counted).catch((error: unknown) => log.error('usage could not be kept', { task: uid, error }))
      },
      ...(options.brokerHost ? { host: options.brokerHost } : {}),
      port,
      log,
    }),
  )
  stops.splice(-1, 0, () => broker.close())
  const tasks = createTaskService({
    client,
    namespace,
    eventLog,
    directory: directory.tasks,
    defaultAgent: options.defaultAgent,
    localRepositories: options.localRepositories,
    metrics,
  })
  const app = createApp({ tasks, token: options.token, isReady: options.isReady, registry, version, log })
  const http = await listenRemembered(options.httpPort, options.remembered.http, (port) =>
    listen({ fetch: app.fetch, port, ...(options.httpHost ? { host: options.httpHost } : {}) }),
  )
  stops.splice(-1, 0, () => http.close())
  return {
    http,
    broker,
    controller,
    ready: controller.ready,
    isBusy: () => controller.tasks.list().some((task) => !isEnded(task.status?.phase)),
    stop: ({ graceMs }) => stopAll(graceMs),
  }
}

function isEnded(phase: string | undefined): boolean {
  return phase === 'SUCCEEDED' || phase === 'FAILED' || phase === 'TIMED_OUT' || phase === 'CANCELLED'
}
