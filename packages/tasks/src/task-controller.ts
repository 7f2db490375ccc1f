import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { findAgent } from '@corral/agents'
import { createInformer, type Informer, type KubeClient } from '@corral/kube'
import { type AgentTask, AgentTasks, type Clock, type Logger, SandboxClaims, type Stored } from '@corral/resources'
import { type ControllerMetrics, controllingOwner, keyOf, startController, WorkQueue } from '@corral/runtime'
import { createGrants } from './agent-task/admission.js'
import type { EndReason, StepName } from './agent-task/plan.js'
import { taskReconciler } from './agent-task/reconciler.js'
import { isActive, isFinished } from './agent-task/stages.js'
import { createStepRunner } from './agent-task/step-runner.js'
import type { UsageRecord } from './agent-task/usage-record.js'
import type { EventLog } from './event-log/event-log.js'
import type { Repository } from './repository/repository.js'
import type { SandboxAccess, SandboxSession } from './sandbox/sandbox-session.js'
import { findWorkspace, type Workspace } from './sandbox/workspace.js'
import { followAgentStep, startAgentStep, stopAgentStep } from './steps/agent-steps.js'
import { repositoryStep } from './steps/repository-step.js'
import { collectStep, pushStep } from './steps/result-steps.js'
import { setupStep } from './steps/setup-step.js'
import type { Step, StepContext, StepOutcome } from './steps/step.js'
import { TaskError } from './task-error.js'
import type { TaskMetrics } from './task-metrics.js'

export interface TaskControllerOptions {
  client: KubeClient
  namespace: string
  sandboxes: SandboxAccess
  repository: Repository
  eventLog: EventLog
  usage: UsageRecord
  broker: { baseUrl: string; tokenFor(taskUid: string): string }
  /** Whether the platform has a key for this provider. */
  hasModelKey(provider: string): Promise<boolean>
  /** `tasks/` below the data directory. */
  directory: string
  /** Tasks that may hold a sandbox at once; 0 admits none. */
  maxConcurrent: number
  isolation?: string
  metrics?: TaskMetrics & { controller?: ControllerMetrics }
  clock: Clock
  log: Logger
}

export interface TaskController {
  readonly ready: Promise<void>
  readonly tasks: Informer<AgentTask>
  /** Ends running tasks with their work saved (`PlatformStopped`), leaves queued ones queued. Bounded by `graceMs`. */
  stop(options: { graceMs: number }): Promise<void>
}

const steps: Record<StepName, Step> = {
  repository: repositoryStep,
  setup: setupStep,
  'start-agent': startAgentStep,
  'follow-agent': followAgentStep,
  'stop-agent': stopAgentStep,
  collect: collectStep,
  push: pushStep,
}

/** Starts the controller of AgentTasks in one namespace. */
export function startTaskController(options: TaskControllerOptions): TaskController {
  const { client, namespace, clock, log } = options
  const lifetime = new AbortController()
  let stopping = false
  const metrics = options.metrics?.controller
  const queue = new WorkQueue({ name: 'agenttask', ...(metrics ? { metrics } : {}) })
  const common = { client, namespace, log, signal: lifetime.signal }
  const tasks = createInformer({ ...common, kind: AgentTasks, indexers: { uid: (task) => [task.metadata.uid] } })
  const claims = createInformer({ ...common, kind: SandboxClaims })
  const byUid = (uid: string): Stored<AgentTask> | undefined => tasks.byIndex('uid', uid)[0]
  const wake = (uid: string): void => {
    const task = byUid(uid)
    if (task) queue.add(keyOf(task))
  }
  const runner = createStepRunner({ wake, log })
  const grants = createGrants({ limit: options.maxConcurrent })
  const wakeWaiting = (): void => {
    for (const uid of grants.admissible()) wake(uid)
  }
  const onTask = (task: Stored<AgentTask>): void => {
    grants.observe(task)
    queue.add(keyOf(task))
    if (isFinished(task)) wakeWaiting()
  }
  const onGone = (task: Stored<AgentTask>): void => {
    runner.forget(task.metadata.uid)
    grants.forget(task.metadata.uid)
    wakeWaiting()
  }
  tasks.subscribe({ add: onTask, update: onTask, delete: onGone })
  const ownerKeys = controllingOwner(AgentTasks)
  const onClaim = (claim: Parameters<typeof ownerKeys>[0]): void => {
    for (const key of ownerKeys(claim)) queue.add(key)
  }
  claims.subscribe({ add: onClaim, update: onClaim, delete: onClaim })

  const reconcile = taskReconciler({
    client,
    eventLog: options.eventLog,
    steps: runner,
    runStep: (step, task, reason, signal) => runStep(step, task, reason, signal, options),
    mayStart: (uid) => !stopping && grants.mayStart(uid),
    isStopping: () => stopping,
    usageOf: (uid) => options.usage.total(uid),
    async removeRecord(uid) {
      await options.eventLog.remove(uid)
      await rm(join(options.directory, uid), { recursive: true, force: true })
    },
    finished: (task, code) => options.metrics?.finished(task, code),
    isolation: options.isolation,
    clock,
    log,
  })
  const ready = Promise.all([tasks.hasSynced, claims.hasSynced]).then(() => undefined)
  ready.catch(() => undefined) // whoever waits sees it; stopping before the first sync is no failure
  // One worker: admission counts what it has just admitted. Everything slow is a step and runs beside it.
  const controller = ready.then(() =>
    startController({
      name: 'agenttask',
      workers: 1,
      reconcile,
      queue,
      ...(metrics ? { metrics } : {}),
      log,
      signal: lifetime.signal,
    }),
  )
  controller.catch(() => undefined)

  return {
    ready,
    tasks,
    async stop({ graceMs }) {
      stopping = true
      const running = (): Stored<AgentTask>[] => tasks.list().filter(isActive)
      const drained = new Promise<void>((resolve) => {
        const check = (): void => {
          if (running().length === 0) resolve()
        }
        tasks.subscribe({ update: check, delete: check })
        check()
      })
      for (const task of running()) queue.add(keyOf(task))
      await Promise.race([drained, new Promise((resolve) => setTimeout(resolve, graceMs).unref())])
      lifetime.abort()
      await runner.close()
      await controller.then(({ stopped }) => stopped).catch(() => undefined)
      await Promise.all([tasks.stop(), claims.stop()])
    },
  }
}

async function runStep(
  name: StepName,
  task: Stored<AgentTask>,
  reason: EndReason | undefined,
  signal: AbortSignal,
  options: TaskControllerOptions,
): Promise<StepOutcome> {
  const uid = task.metadata.uid
  const adapter = findAgent(task.spec.agent.name)
  if (!adapter) throw new TaskError('UnknownAgent', `there is no agent "${task.spec.agent.name}"`)
  const taskDirectory = join(options.directory, uid)
  await mkdir(taskDirectory, { recursive: true, mode: 0o700 })
  let session: Promise<SandboxSession> | undefined
  let workspace: Promise<Workspace> | undefined
  const openSandbox = (): Promise<SandboxSession> => {
    const sandboxName = task.status?.sandbox?.sandboxName
    if (!sandboxName) return Promise.reject(new TaskError('InternalError', 'the sandbox was not recorded'))
    session ??= options.sandboxes.open(
      { namespace: task.metadata.namespace ?? 'default', name: sandboxName },
      { signal },
    )
    return session
  }
  const context: StepContext = {
    task,
    openSandbox,
    findWorkspace() {
      workspace ??= openSandbox().then(({ daemon }) => findWorkspace(daemon, uid, signal))
      return workspace
    },
    taskDirectory,
    adapter,
    repository: options.repository,
    eventLog: options.eventLog,
    broker: options.broker,
    hasModelKey: () => (adapter.provider ? options.hasModelKey(adapter.provider) : Promise.resolve(true)),
    signal,
    reason,
    now: () => options.clock.now(),
    log: options.log.child({ task: task.metadata.name, step: name }),
  }
  try {
    return await steps[name](context)
  } finally {
    await session?.then((open) => open.close()).catch(() => undefined)
  }
}
