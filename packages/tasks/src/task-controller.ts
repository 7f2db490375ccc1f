import { createInformer, type Informer } from '@corral/kube'
import { type AgentTask, AgentTasks, Pods, SandboxClaims, type Stored } from '@corral/resources'
import { controllingOwner, keyOf, startController, WorkQueue } from '@corral/runtime'
import { agentOf, providerNameOf } from './agent-spec.js'
import { createConcurrencyLimiter } from './agent-task/admission.js'
import { poolDefaults } from './agent-task/claim.js'
import { sandboxNeededUntilMs } from './agent-task/deadline.js'
import type { StepName } from './agent-task/plan.js'
import { findDeletion, findEviction, findOomKill, withEviction } from './agent-task/pod-eviction.js'
import { taskReconciler } from './agent-task/reconciler.js'
import { createStepRunner } from './agent-task/step-runner.js'
import type { TaskPorts } from './agent-task/task-ports.js'
import type { UsageRecord } from './agent-task/usage-record.js'
import { startEnvironmentController } from './builds/environment-controller.js'
import { archivedTrees } from './environment/archive/archived-trees.js'
import type { EnvironmentBuilds } from './environment/build/environment-builds.js'
import { snapshotLimits } from './environment/build/prune.js'
import { nodeTrees } from './environment/build/snapshot-trees.js'
import { createHeldLimit, defaultMaxHeld } from './held/held-limit.js'
import { holdLeftMs } from './held/hold.js'
import { createPlaceLooks } from './place-looks.js'
import { isAwaitingApproval } from './plan-approval/await-approval.js'
import { checkSandbox } from './project/sandbox-choice.js'
import { followAgentStep, startAgentStep, stopAgentStep } from './steps/agent-steps.js'
import { checkStep } from './steps/check-step.js'
import { fetchAhead } from './steps/fetch-ahead.js'
import { repairStep, stopChecksStep } from './steps/repair-step.js'
import { repositoryStep } from './steps/repository-step.js'
import { collectStep, pushStep } from './steps/result-steps.js'
import { salvageStep } from './steps/salvage-step.js'
import { sandboxContext, sandboxLine } from './steps/sandbox-context.js'
import { setupStep } from './steps/setup-step.js'
import type { Step, StepContext, StepOutcome } from './steps/step.js'
import { suspendStep } from './steps/suspend-step.js'
import { takeOverStep } from './steps/take-over-step.js'
import type { StepOptions, TaskControllerOptions } from './task-controller-options.js'
import { TaskError } from './task-error.js'
import { isFinished } from './task-state/stages.js'
import { taskSpans, tracedStep } from './tracing/task-spans.js'

/** By the uid of the task. */
export type TaskQueue = ReadonlyMap<string, { position: number; reason: string }>

export interface TaskController {
  readonly ready: Promise<void>
  readonly tasks: Informer<AgentTask>
  /** Whether any environment is being built. */
  isBuilding(): boolean
  /** The tasks that hold a sandbox, as far as is known. */
  holders(): Stored<AgentTask>[]
  /** Looks at the task of this uid again: something beside its objects has changed. */
  wake(uid: string): void
  /** The waiting tasks by uid: their place, counted from 1, and what they wait for. */
  queue(): TaskQueue
  /** Stops deciding. Every task stays in its state and its agent goes on; the next controller continues with them. */
  stop(): Promise<void>
}

const steps: Record<StepName, Step> = {
  repository: repositoryStep,
  setup: setupStep,
  'start-agent': startAgentStep,
  'follow-agent': followAgentStep,
  'stop-agent': stopAgentStep,
  check: checkStep,
  repair: repairStep,
  'stop-checks': stopChecksStep,
  collect: collectStep,
  push: pushStep,
  'take-over': takeOverStep,
  salvage: salvageStep,
  suspend: suspendStep,
}

/** Starts the controller of AgentTasks in one namespace. */
export function startTaskController(options: TaskControllerOptions): TaskController {
  const { client, namespace, clock, log } = options
  const lifetime = new AbortController()
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
  const isHeld = (task: AgentTask): boolean => {
    const provider = providerNameOf(task)
    return provider !== undefined && options.holds?.heldUntil(provider) !== undefined
  }
  const heldLimit = createHeldLimit({ limit: options.maxHeld ?? defaultMaxHeld, now: () => clock.now() })
  const limiter = createConcurrencyLimiter({ limit: options.maxConcurrent, isHeld })
  const isPlaceWanted = (): boolean => limiter.inOrder().length > 0 && limiter.admissible().size === 0
  /** Tasks that hold a sandbox while a person decides: another task may need their place. */
  const undecided = new Set<string>()
  const wakeWaiting = (): void => {
    for (const uid of limiter.admissible()) wake(uid)
  }
  const holdTimers = timers(wakeWaiting)
  const tellNeeded = sandboxesNeeded(() => tasks.list(), options)
  const onTask = (task: Stored<AgentTask>): void => {
    limiter.observe(task)
    for (const uid of heldLimit.observe(task)) wake(uid)
    tellNeeded()
    queue.add(keyOf(task))
    if (isAwaitingApproval(task) && !isFinished(task)) undecided.add(task.metadata.uid)
    else undecided.delete(task.metadata.uid)
    if (undecided.size > 0 && isPlaceWanted()) for (const uid of undecided) wake(uid)
    if (isFinished(task) || isAwaitingApproval(task)) wakeWaiting()
  }
  const onGone = (task: Stored<AgentTask>): void => {
    runner.forget(task.metadata.uid)
    options.usage.forget(task.metadata.uid)
    limiter.forget(task.metadata.uid)
    heldLimit.forget(task.metadata.uid)
    undecided.delete(task.metadata.uid)
    tellNeeded()
    wakeWaiting()
  }
  const stopWaiting = options.holds?.onChange((provider) => {
    const until = options.holds?.heldUntil(provider)
    if (!until) wakeWaiting()
    else holdTimers.add(until.getTime() - clock.now().getTime())
  })
  tasks.subscribe({ add: onTask, update: onTask, delete: onGone })
  const ownerKeys = controllingOwner(AgentTasks)
  const onClaim = (claim: Parameters<typeof ownerKeys>[0]): void => {
    for (const key of ownerKeys(claim)) queue.add(key)
    // The task it is named after learns that its held sandbox went to a follow-up.
    if (tasks.get(keyOf(claim))) queue.add(keyOf(claim))
  }
  claims.subscribe({ add: onClaim, update: onClaim, delete: onClaim })

  const { snapshots } = options
  // Without mounts of its own a sandbox's paths differ from those of the build, which files may hold.
  const hasSnapshots = snapshots !== undefined && options.isolation !== 'process'
  const limits = { ...snapshotLimits, ...options.snapshotLimits }
  const environments = hasSnapshots
    ? startEnvironmentController({
        ...options,
        trees:
          typeof snapshots === 'function'
            ? nodeTrees(client, snapshots)
            : archivedTrees({ directory: snapshots, client, namespace, clock, budgetBytes: limits.budgetBytes }),
        claims,
        limits,
        log: log.child({ controller: 'environment' }),
      })
    : undefined

  const talkOf = ({ metadata: { uid } }: Stored<AgentTask>): Pick<StepContext, 'report' | 'watchTask'> => ({
    report: (report) => runner.report(uid, report),
    watchTask(onChange) {
      const tell = (task: Stored<AgentTask>): void => {
        if (task.metadata.uid === uid) onChange(task)
      }
      return tasks.subscribe({ add: tell, update: tell })
    },
  })

  const looks = createPlaceLooks(options, {
    signal: lifetime.signal,
    onClaim(name) {
      queue.add(`${namespace}/${name}`)
    },
  })
  const own: TaskPorts = {
    client,
    provider: undefined,
    ensurePool: async () => poolDefaults.pool,
    at: async (task) => {
      const look = await looks.of(task)
      if (!look) return undefined
      const { client: seen, place, isolation, hasEgressByName } = look
      if (!place) return own
      return {
        ...own,
        client: seen,
        provider: place.name,
        ensurePool: () => place.ensurePool(),
        isolation,
        hasEgressByName: hasEgressByName ?? true,
      }
    },
    records: options.records,
    fetchAhead(task) {
      void fetchAhead(task, options, lifetime.signal)
    },
    steps: runner,
    runStep: (step, task, { reason, message: endMessage }, signal, progress) =>
      tracedStep({ task, step, spans: options.spans, clock }, async () => {
        const seen = await looks.step(task)
        // Snapshots are of this platform's own nodes.
        const builds = seen.place ? undefined : environments?.builds
        return withEviction(
          runStep(step, task, { reason, endMessage, signal, progress, ...talkOf(task) }, seen, builds),
          async (hasOomKill) =>
            (await findEviction(seen.client, task)) ??
            (await findDeletion(seen.client, task)) ??
            findOomKill(seen.client, task, hasOomKill),
        )
      }),
    mayStart: (uid) => limiter.mayStart(uid),
    isPlaceWanted,
    isHeldOverLimit: (uid) => heldLimit.isOver(uid),
    usageOf: (uid) => options.usage.total(uid),
    budgetRefusalOf: (uid) => options.usage.budgetRefusal(uid),
    finished(task, code) {
      options.metrics?.finished(task, code)
      if (options.spans) for (const span of taskSpans(task, code, clock.now())) options.spans(span)
    },
    isolation: options.isolation,
    hasEgressByName: options.hasEgressByName ?? true,
    clock,
    log,
  }
  const reconcile = taskReconciler(own)
  const ready = Promise.all([tasks.hasSynced, claims.hasSynced, environments?.ready]).then(() => undefined)
  ready.catch(() => undefined) // callers that await it get the error; stopping before the first sync is no failure
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
    isBuilding: () => environments?.isBuilding() === true,
    wake,
    queue: () => {
      const full = `${options.maxConcurrent} tasks run at once at most`
      return new Map(
        limiter.inOrder().map((task, index) => {
          const provider = providerNameOf(task)
          const until = provider === undefined ? undefined : options.holds?.heldUntil(provider)
          const reason = until ? `${provider} asked to wait until ${until.toISOString()}` : full
          return [task.metadata.uid, { position: index + 1, reason }]
        }),
      )
    },
    holders: () => tasks.list().filter((task) => sandboxNeededUntilMs(task, clock.now()) !== undefined),
    async stop() {
      stopWaiting?.()
      holdTimers.clear()
      lifetime.abort()
      await runner.close()
      await controller.then(({ stopped }) => stopped).catch(() => undefined)
      await environments?.stop()
      await Promise.all([tasks.stop(), claims.stop(), looks.stop()])
    },
  }
}

/** Calls back after each time that was added. */
function timers(onTime: () => void): { add(ms: number): void; clear(): void } {
  const running = new Set<NodeJS.Timeout>()
  return {
    add(ms) {
      // A moment later: what ends at that time has ended then.
      const timer = setTimeout(() => {
        running.delete(timer)
        onTime()
      }, ms + 10)
      running.add(timer)
    },
    clear() {
      for (const timer of running) clearTimeout(timer)
      running.clear()
    },
  }
}

/** Smaller changes of the time are not worth telling. */
const neededStepMs = 60_000

/** Many changes at once are looked at once. */
function sandboxesNeeded(
  list: () => readonly Stored<AgentTask>[],
  { clock, onSandboxesNeeded }: Pick<TaskControllerOptions, 'clock' | 'onSandboxesNeeded'>,
): () => void {
  let toldMs = 0
  let isWaiting = false
  const tell = (): void => {
    isWaiting = false
    const now = clock.now()
    const heldUntilMs = (leftMs: number | undefined): number => (leftMs === undefined ? 0 : now.getTime() + leftMs)
    const needMs = (task: Stored<AgentTask>): number =>
      task.status?.sandbox?.provider !== undefined
        ? 0
        : (sandboxNeededUntilMs(task, now) ?? heldUntilMs(holdLeftMs(task, now)))
    const untilMs = Math.max(0, ...list().map(needMs))
    if (untilMs === toldMs || (untilMs !== 0 && toldMs !== 0 && Math.abs(untilMs - toldMs) < neededStepMs)) return
    toldMs = untilMs
    onSandboxesNeeded?.(untilMs === 0 ? undefined : new Date(untilMs))
  }
  return () => {
    if (isWaiting || !onSandboxesNeeded) return
    isWaiting = true
    setImmediate(tell)
  }
}

async function runStep(
  name: StepName,
  task: Stored<AgentTask>,
  run: Pick<StepContext, 'reason' | 'endMessage' | 'signal' | 'progress' | 'report' | 'watchTask'>,
  options: StepOptions,
  environments: EnvironmentBuilds | undefined,
): Promise<StepOutcome> {
  const { signal } = run
  const { adapter, options: agentOptions } = agentOf(task)
  const line = sandboxLine(task, options, signal)
  const stepLog = options.log.child({ task: task.metadata.name, step: name })
  const context: StepContext = {
    ...sandboxContext(task, line, options, { environments, signal, log: stepLog }),
    former: task.spec.retry ? options.records.of(task.spec.retry.uid) : undefined,
    continued: task.spec.continues ? options.records.of(task.spec.continues.uid) : undefined,
    findRepeated: () => findTask(task, { task: task.spec.retryOf, uid: task.spec.retry?.uid }, options),
    findFormer: () => findFormer(task, options),
    findFormerPrompt: async () => (await findFormer(task, options))?.spec.prompt,
    adapter,
    agentOptions,
    broker: options.broker,
    findModel: () => findModel(task, options.providers),
    ...run,
    whySandboxEnded: () => whySandboxEnded(task, options),
  }
  try {
    if (name === 'repository') await checkSandbox(options.client, task, options.isolation)
    return await withBudget(await steps[name](context), task, options.usage)
  } finally {
    await line.close()
  }
}

/** However the agent took it that its calls were refused, the budget is why it ended. */
async function withBudget(outcome: StepOutcome, task: Stored<AgentTask>, usage: UsageRecord): Promise<StepOutcome> {
  const isOwnEnd = ['Cancelled', 'Timeout', 'QuestionExpired'].includes(outcome.reason)
  if (outcome.condition !== 'AgentFinished' || isOwnEnd || !task.spec.limits) return outcome
  const refusal = await usage.budgetRefusal(task.metadata.uid)
  return refusal === undefined ? outcome : { ...outcome, reason: 'BudgetExceeded', message: refusal }
}

async function findModel(
  task: AgentTask,
  providers: TaskControllerOptions['providers'],
): ReturnType<StepContext['findModel']> {
  const name = providerNameOf(task)
  if (name === undefined) return undefined
  const provider = await providers.find(name)
  if (!provider)
    throw new TaskError('InvalidTask', `there is no provider or endpoint "${name}"`, {
      hint: 'List them with `corral endpoint list`, add one with `corral endpoint add`.',
    })
  return { provider, isUsable: await providers.isUsable(provider) }
}

const findFormer = (task: Stored<AgentTask>, options: StepOptions): Promise<Stored<AgentTask> | undefined> =>
  findTask(task, { ...task.spec.continues }, options)

/** Another task of the same namespace; undefined where it is gone, or another one has its name now. */
async function findTask(
  { metadata: { namespace = 'default' } }: Stored<AgentTask>,
  { task: name, uid }: { task?: string | undefined; uid?: string | undefined },
  { client }: StepOptions,
): Promise<Stored<AgentTask> | undefined> {
  if (name === undefined) return undefined
  const found = await client.find(AgentTasks, { namespace, name })
  return found?.metadata.uid === uid ? found : undefined
}

/** The reason Kubernetes gives for the last end of a container in the task's pod, e.g. `OOMKilled`. */
async function whySandboxEnded(task: Stored<AgentTask>, { client }: StepOptions): Promise<string | undefined> {
  const { namespace = 'default' } = task.metadata
  const name = task.status?.sandbox?.podName
  const pod = name ? await client.find(Pods, { namespace, name }) : undefined
  const ends = (pod?.status?.containerStatuses ?? []).map(
    ({ state, lastState }) => state?.terminated?.reason ?? lastState?.terminated?.reason,
  )
  return ends.find((reason) => reason !== undefined)
}
