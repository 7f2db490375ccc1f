import type { TaskStage } from '@corral/protocol'
import {
  type AgentTask,
  type AgentTaskStatus,
  AgentTasks,
  findCondition,
  isAlreadyExists,
  type SandboxClaim,
  SandboxClaims,
  type Stored,
} from '@corral/resources'
import type { Reconcile } from '@corral/runtime'
import { completeGroup } from '../attempts/complete-group.js'
import { deleteClaim, findClaim } from '../held/find-claim.js'
import { noteLetGo, takeClaim } from '../held/take-claim.js'
import { beyondReach, withoutProvider } from '../places/beyond-reach.js'
import { performWaiting } from '../plan-approval/perform-waiting.js'
import { recordTalk } from '../questions/record-talk.js'
import { continueThread } from '../thread/continue-thread.js'
import { claimFor, ensurePool, poolOf } from './claim.js'
import { finishTask } from './finish.js'
import { planTask, type StepName, type TaskAction, taskFinalizer, taskLimits } from './plan.js'
import { findEviction, findPodName } from './pod-eviction.js'
import { findPodProblem } from './pod-start.js'
import { append, appendIfRoom, writeStatus } from './recording.js'
import { hasPassed, isActive, stage } from './stages.js'
import { judgeFailure, retryMs } from './step-failure.js'
import type { EndedStep } from './step-runner.js'
import type { TaskPorts } from './task-ports.js'
import { causeOf, startedAgain } from './task-status.js'

/** Steps whose start is told in the log of the task. */
const announced: ReadonlySet<StepName> = new Set([
  'repository',
  'setup',
  'push',
  'check',
  'collect',
  'take-over',
  'salvage',
])

const stageOf: Record<StepName, TaskStage> = {
  repository: 'repository',
  setup: 'setup',
  'start-agent': 'agent',
  'follow-agent': 'agent',
  'stop-agent': 'agent',
  check: 'checks',
  repair: 'checks',
  'stop-checks': 'checks',
  collect: 'result',
  push: 'push',
  'take-over': 'result',
  salvage: 'result',
  suspend: 'cleanup',
}

/** A task and its claim, or the one it may take over. */
interface Found {
  task: Stored<AgentTask>
  claim: Stored<SandboxClaim> | undefined
}

/** Read, plan, act. A pass that finds an ended step records it and leaves the rest to the next pass, which reads it back. */
export function taskReconciler(home: TaskPorts): Reconcile {
  return async ({ namespace, name, signal }) => {
    const task = await home.client.find(AgentTasks, { namespace, name }, { signal })
    if (!task) return {}
    const uid = task.metadata.uid
    const ended = home.steps.takeEnded(uid)
    if (ended) return recordEnded(home, task, ended)
    const ports = await home.at(task)
    if (!ports) return withoutProvider(task, home)

    const found = await findClaim(ports.client, task, ports.clock.now(), signal).catch((error: unknown) => {
      if (ports.provider === undefined) throw error
      return { error }
    })
    if ('error' in found) return beyondReach(task, found.error, ports)
    const { claim, held, isNameTaken } = found
    const isAwaited = claim !== undefined && isActive(task) && !hasPassed(task, 'SandboxReady') && !isReady(claim)
    const plan = planTask({
      task,
      claim,
      isSandboxHeld: held !== undefined,
      isClaimNameTaken: isNameTaken,
      isHeldOverLimit: ports.isHeldOverLimit(uid),
      podProblem: isAwaited ? await findPodProblem(ports.client, claim) : undefined,
      hasEgressByName: ports.hasEgressByName,
      step: ports.steps.current(uid),
      mayStart: ports.mayStart(uid),
      isPlaceWanted: ports.isPlaceWanted(),
      budgetRefusal: task.spec.limits ? await ports.budgetRefusalOf(uid) : undefined,
      now: ports.clock.now(),
    })
    for (const action of plan.actions) await perform(action, { task, claim: claim ?? held }, ports)
    return plan.requeueAfterMs === undefined ? {} : { requeueAfterMs: plan.requeueAfterMs }
  }
}

async function perform(action: TaskAction, { task, claim }: Found, ports: TaskPorts): Promise<void> {
  const { client, steps } = ports
  const uid = task.metadata.uid
  switch (action.kind) {
    case 'addFinalizer':
      await client.update(AgentTasks, {
        ...task,
        metadata: { ...task.metadata, finalizers: [...(task.metadata.finalizers ?? []), taskFinalizer] },
      })
      return
    case 'removeFinalizer':
      steps.forget(uid)
      await ports.records.remove(uid)
      await client.update(AgentTasks, {
        ...task,
        metadata: {
          ...task.metadata,
          finalizers: (task.metadata.finalizers ?? []).filter((name) => name !== taskFinalizer),
        },
      })
      return
    case 'createClaim':
      return createClaim(task, ports)
    case 'completeGroup':
      return completeGroup(task, ports)
    case 'takeClaim':
      if (claim) await takeClaim(claim, task, ports)
      return
    case 'letGo':
      await noteLetGo(client, task, action.reason)
      return
    case 'deleteClaim':
      // As it was read: a follow-up may have taken it over meanwhile.
      if (claim) await deleteClaim(client, claim, { onlyUnchanged: task.status?.sandbox?.heldUntil !== undefined })
      return
    case 'abortStep':
      steps.abort(uid)
      return
    case 'runStep': {
      const { step, reason, message } = action
      if (announced.has(step)) await append(ports, uid, [{ type: 'stage', stage: stageOf[step], state: 'started' }])
      steps.start(uid, step, (signal, progress) => ports.runStep(step, task, { reason, message }, signal, progress))
      return
    }
    case 'record': {
      const isSandbox = action.condition === 'SandboxReady'
      const sandbox = isSandbox && claim ? await sandboxStatus(task, claim, ports) : {}
      if (isSandbox)
        await append(ports, uid, [{ type: 'stage', stage: 'sandbox', state: 'finished', detail: action.message }])
      await writeStatus(ports, task, { ...action, status: 'True', patch: sandbox })
      return
    }
    case 'recordWaiting': {
      const detail = `${action.reason}: ${action.message}`.slice(0, 2_000)
      await append(ports, uid, [{ type: 'stage', stage: 'sandbox', state: 'progress', detail }])
      await writeStatus(ports, task, { ...action, condition: 'SandboxReady', status: 'Unknown' })
      return
    }
    case 'announceAgent':
      await writeStatus(ports, task, { ...agentAnnounced, status: 'Unknown' })
      return
    case 'awaitApproval':
    case 'releaseSandbox':
    case 'nextRun':
      return performWaiting(action, task, ports)
    case 'recordTalk':
      return recordTalk(action.report, task, ports)
    case 'continueThread':
      return continueThread(task, ports)
    case 'startAgain': {
      // A sandbox that filled the disk would do so again.
      const eviction = await findEviction(client, task)
      return eviction ? finishTask(task, eviction, ports) : startAgain({ task, claim }, action, ports)
    }
    case 'finish': {
      const eviction = action.ending.code === 'SandboxLost' ? await findEviction(client, task) : undefined
      return finishTask(task, eviction ?? action.ending, ports)
    }
  }
}

async function recordEnded(
  ports: TaskPorts,
  task: Stored<AgentTask>,
  ended: EndedStep,
): Promise<{ requeueAfterMs?: number }> {
  const uid = task.metadata.uid
  if ('outcome' in ended) {
    const { condition, conditionStatus = 'True', reason, message, status, events } = ended.outcome
    if (events) await append(ports, uid, events)
    await writeStatus(ports, task, {
      condition,
      status: conditionStatus,
      reason,
      message,
      patch: withOutcome(task, status),
    })
    return { requeueAfterMs: 0 }
  }
  const failure = judgeFailure(ended.name, ended.error, ended.failures)
  if (!failure) {
    ports.log.warn('task step failed, trying again', {
      task: task.metadata.name,
      step: ended.name,
      failures: ended.failures,
      error: ended.error,
    })
    return { requeueAfterMs: retryMs(ended.name, ended.failures) }
  }
  await appendIfRoom(ports, uid, [
    { type: 'error', code: failure.code, message: failure.message.slice(0, 60_000) },
    { type: 'stage', stage: stageOf[ended.name], state: 'failed', detail: failure.message.slice(0, 2_000) },
  ])
  const { condition, code, message, hint, status } = failure
  await writeStatus(ports, task, {
    condition,
    // However the agent's end was missed, it is over: what it left is collected before the task ends.
    status: condition === 'AgentFinished' || condition === 'ChecksDone' ? 'True' : 'False',
    reason: code,
    message,
    // A cause the agent already ended with stays the task's cause.
    patch: {
      ...(status ?? keptSandbox(task, ended.name, code)),
      ...(task.status?.cause || condition === 'SandboxReady' ? {} : { cause: causeOf(code, message, hint) }),
    },
  })
  return { requeueAfterMs: 0 }
}

/**
 * A sandbox whose work could not be taken out is kept. Not on a full disk: what fills it has to go before any other task
 * can write again.
 */
function keptSandbox({ status }: AgentTask, step: StepName, code: string): Partial<AgentTaskStatus> {
  if (step !== 'collect' || code === 'DiskFull' || code === 'DiskLimit' || !status?.sandbox) return {}
  return { sandbox: { ...status.sandbox, kept: true } }
}

const agentAnnounced = { condition: 'AgentStarted', reason: 'Starting', message: 'the agent is being started' } as const

/** The claim first: without it the next pass comes here again, with it the old sandbox would be taken for the new one. */
async function startAgain(
  { task, claim }: Found,
  { attempt, message }: { attempt: number; message: string },
  ports: TaskPorts,
): Promise<void> {
  const { name, uid } = task.metadata
  if (claim) await deleteClaim(ports.client, claim)
  const detail = `${message}; trying again with another one (${attempt} of ${taskLimits.attempts})`
  await append(ports, uid, [{ type: 'stage', stage: 'sandbox', state: 'failed', detail: detail.slice(0, 2_000) }])
  await ports.client.updateStatus(AgentTasks, startedAgain(task, { attempt, message }, ports.clock.now()))
  ports.log.warn('task started again', { task: name, attempt, message })
}

/** The work of an agent that was cut short is not the whole of it. */
function withOutcome(task: AgentTask, status: Partial<AgentTaskStatus> = {}): Partial<AgentTaskStatus> {
  const end = stage(task, 'AgentFinished')?.reason ?? ''
  return status.outcome === 'changes' && cutShort.has(end) ? { ...status, outcome: 'partial' } : status
}

const cutShort = new Set(['SandboxLost', 'DaemonUnreachable', 'OutOfMemory'])

async function createClaim(task: Stored<AgentTask>, ports: TaskPorts): Promise<void> {
  const { client } = ports
  const namespace = task.metadata.namespace ?? 'default'
  const asked = task.spec.sandbox
  const pool = poolOf(task, asked?.pool || asked?.template ? undefined : await ports.ensurePool())
  await ensurePool(client, namespace, pool)
  await append(ports, task.metadata.uid, [
    { type: 'stage', stage: 'claim', state: 'started', detail: `pool ${pool.name}` },
  ])
  await client.create(SandboxClaims, claimFor(task, pool.name, ports.clock.now())).catch(ignoreExisting)
}

async function sandboxStatus(
  task: Stored<AgentTask>,
  claim: Stored<SandboxClaim>,
  ports: TaskPorts,
): Promise<Partial<AgentTaskStatus>> {
  const { namespace } = task.metadata
  const claimName = claim.metadata.name
  const isTaken = claimName !== task.metadata.name
  const sandboxName = claim.status?.sandbox?.name
  const isolation = ports.isolation
  return {
    sandbox: {
      claimName,
      ...(isTaken ? { takenFrom: task.spec.continues?.task ?? claimName } : {}),
      ...(sandboxName
        ? { sandboxName, podName: await findPodName(ports.client, namespace ?? 'default', sandboxName) }
        : {}),
      ...(isolation ? { isolation } : {}),
      ...(ports.provider === undefined ? {} : { provider: ports.provider }),
    },
    ...(task.spec.egress ? { egress: task.spec.egress } : {}),
  }
}

function isReady(claim: SandboxClaim): boolean {
  return findCondition(claim.status?.conditions ?? [], 'Ready')?.status === 'True'
}

function ignoreExisting(error: unknown): void {
  if (!isAlreadyExists(error)) throw error
}
