import { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import { type AgentTask, isFinalPhase, type Stored } from '@corral/resources'
import { promControllerMetrics } from '@corral/runtime'
import {
  adoptRestoredRecords,
  type Broker,
  brokeredTask,
  createGit,
  createProviderHolds,
  createRepository,
  createTaskTokens,
  createUsageRecord,
  electTaskController,
  fileEnvironmentGrants,
  filePrices,
  fileSecretStore,
  modelCallEvent,
  promTaskGauges,
  type SandboxAccess,
  sdkSandboxAccess,
  startBroker,
  type TaskDemand,
  type TaskQueue,
  taskDemand,
  writeGlobalConfig,
} from '@corral/tasks'
import { ensureSecret } from './data-directory.js'
import { listenRemembered } from './free-port.js'
import { brokerService, brokerServicePort, platformNamespace } from './names.js'
import { packageClients } from './package-mirror.js'
import type { TaskPlatformOptions, TaskShared } from './task-platform.js'

/** Reconciles tasks while this process leads, and answers agents that ask for a model. */
export interface TaskControllerPart {
  readonly broker: Broker
  readonly ready: Promise<void>
  /** Whether tasks, and the models of their agents, are another process's. */
  isStandingBy(): boolean
  /** The tasks that hold a sandbox, as far as is known; also after `stop`. */
  holders(): Stored<AgentTask>[]
  /** See `TaskController`; empty while another process leads. */
  queue(): TaskQueue
  /** How much work there is; undefined while another process leads. */
  demand(): TaskDemand | undefined
  /** Whether any task waits or runs here, or an environment is built. */
  isBusy(): boolean
  stop(): Promise<void>
}

export async function startControllerPart(
  options: TaskPlatformOptions,
  shared: TaskShared,
): Promise<TaskControllerPart> {
  const { client, directory, env, clock, log, registry } = options
  const namespace = options.namespace ?? platformNamespace
  const { records, providers, metrics, places, spans } = shared
  const tokens = createTaskTokens(options.brokerSecret ?? ensureSecret(directory, 'secrets/broker-token-secret'))
  const usage = createUsageRecord(records.events)
  const prices = filePrices(directory.prices, (problem) => log.error('prices', { problem }))
  const holds = createProviderHolds({ now: () => clock.now().getTime() })
  const git = createGit({ globalConfig: await writeGlobalConfig(directory.git, env), env })
  const sandboxes: SandboxAccess = sdkSandboxAccess(
    new AgentSandboxClient({ client, namespace, ...(options.connection ? { connection: options.connection } : {}) }),
  )

  await adoptRestoredRecords({ client, namespace, directory: directory.tasks })
  const controller = electTaskController(
    {
      client,
      namespace,
      sandboxes,
      places,
      repository: createRepository({
        git,
        mirrorsDirectory: directory.mirrors,
        ...(options.confine ? { confine: options.confine } : {}),
        path: env.PATH,
      }),
      records,
      usage,
      broker: { baseUrl: `http://${brokerService}:${brokerServicePort}`, tokenFor: (uid) => tokens.issue(uid) },
      providers,
      holds,
      maxConcurrent: options.maxConcurrent,
      ...(options.maxHeld === undefined ? {} : { maxHeld: options.maxHeld }),
      ...(options.snapshots ? { snapshots: options.snapshots } : {}),
      ...(options.snapshotBudgetBytes === undefined
        ? {}
        : { snapshotLimits: { budgetBytes: options.snapshotBudgetBytes } }),
      packageClients: packageClients(env),
      environmentGrants: fileEnvironmentGrants(directory.environmentGrants),
      secrets: fileSecretStore(directory.secrets),
      ...(options.isolation ? { isolation: options.isolation } : {}),
      hasEgressByName: options.hasEgressByName ?? true,
      ...(options.onSandboxesNeeded ? { onSandboxesNeeded: options.onSandboxesNeeded } : {}),
      metrics: { ...metrics, controller: promControllerMetrics(registry) },
      spans,
      clock,
      log,
    },
    options.election,
  )
  // While another process leads there is nothing to count here.
  promTaskGauges(registry, { list: () => controller.current?.tasks.list() ?? [], now: () => clock.now() })
  // A broker that cannot listen ends the start, and with it the controller that is running already.
  const broker = await listenRemembered(options.brokerPort, options.remembered.broker, (port) =>
    startBroker({
      tokens,
      findTask: (uid) => brokeredTask(controller.current?.tasks.byIndex('uid', uid)[0], { providers, usage }),
      findKey: (provider) => providers.keyOf(provider),
      baseUrlOf: (provider) => providers.baseUrlOf(provider),
      recordCall: (uid, call) => {
        const event = modelCallEvent(call, prices.of(call.provider))
        metrics.called(event)
        usage
          .add(uid, event)
          .then(() => (call.code ? controller.current?.wake(uid) : undefined))
          .catch((error: unknown) => log.error('a model call could not be recorded', { task: uid, error }))
      },
      holds,
      ...(options.brokerHost ? { host: options.brokerHost } : {}),
      port,
      log,
    }),
  ).catch(async (error: unknown) => {
    await controller.stop()
    throw error
  })
  return {
    broker,
    ready: controller.ready,
    isStandingBy: () => controller.isStandingBy,
    holders: () => controller.holders(),
    queue: () => controller.current?.queue() ?? new Map(),
    demand: () => controller.current && taskDemand(controller.current.tasks.list()),
    isBusy: () =>
      controller.current?.isBuilding() === true ||
      controller.current?.tasks.list().some((task) => !isFinalPhase(task.status?.phase)) === true,
    stop: () => controller.stop(),
  }
}
