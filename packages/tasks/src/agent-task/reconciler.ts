import type { TaskEventBody, TaskStage } from '@corral/protocol'
import {
  type AgentTask,
  type AgentTaskStatus,
  AgentTasks,
  errorCode,
  isAlreadyExists,
  isNotFound,
  SandboxClaims,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import type { Reconcile } from '@corral/runtime'
import type { EventLogTail } from '../event-log/event-log.js'
import { claimFor, coldPoolOf, poolOf } from './claim.js'
import { planTask, type StepName, type TaskAction, taskFinalizer } from './plan.js'
import { endCondition } from './stages.js'
import { judgeFailure } from './step-failure.js'
import type { EndedStep } from './step-runner.js'
import type { TaskPorts } from './task-ports.js'
import { causeOf, type StatusChange, withStatus } from './task-status.js'

const stageOf: Record<StepName, TaskStage> = {
  repository: 'repository',
  setup: 'setup',
  'start-agent': 'agent',
  'follow-agent': 'agent',
  'stop-agent': 'agent',
  collect: 'result',
  push: 'push',
}

/** Read, plan, act. A pass that finds an ended step records it and leaves the rest to the next pass, which reads it back. */
export function taskReconciler(ports: TaskPorts): Reconcile {
  return async ({ namespace, name, signal }) => {
    const task = await ports.client.find(AgentTasks, { namespace, name }, { signal })
    if (!task) return {}
    const uid = task.metadata.uid
    const ended = ports.steps.takeEnded(uid)
    if (ended) return recordEnded(ports, task, ended)

    const claim = await ports.client.find(SandboxClaims, { namespace, name }, { signal })
    const plan = planTask({
      task,
      claim,
      step: ports.steps.current(uid),
      mayStart: ports.mayStart(uid),
      stopping: ports.isStopping(),
      now: ports.clock.now(),
    })
    for (const action of plan.actions) await perform(action, task, ports)
    return plan.requeueAfterMs === undefined ? {} : { requeueAfterMs: plan.requeueAfterMs }
  }
}

async function perform(action: TaskAction, task: Stored<AgentTask>, ports: TaskPorts): Promise<void> {
  const { client, steps } = ports
  const uid = task.metadata.uid
  const ref = { namespace: task.metadata.namespace ?? 'default', name: task.metadata.name }
  switch (action.kind) {
    case 'addFinalizer':
      await client.update(AgentTasks, {
        ...task,
        metadata: { ...task.metadata, finalizers: [...(task.metadata.finalizers ?? []), taskFinalizer] },
      })
      return
    case 'removeFinalizer':
      steps.forget(uid)
      await ports.removeRecord(uid)
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
    case 'deleteClaim':
      await client.delete(SandboxClaims, ref).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
      return
    case 'abortStep':
      return steps.abort(uid)
    case 'runStep': {
      const { step, reason } = action
      if (step === 'repository' || step === 'setup' || step === 'push' || step === 'collect')
        await append(ports, uid, [{ type: 'stage', stage: stageOf[step], state: 'started' }])
      steps.start(uid, step, (signal) => ports.runStep(step, task, reason, signal))
      return
    }
    case 'record': {
      const isSandbox = action.condition === 'SandboxReady'
      const sandbox = isSandbox ? await sandboxStatus(task, ports) : {}
      if (isSandbox)
        await append(ports, uid, [{ type: 'stage', stage: 'sandbox', state: 'finished', detail: action.message }])
      await writeStatus(ports, task, { ...action, status: 'True', patch: sandbox })
      return
    }
    case 'finish':
      return finish(task, action.ending, ports)
  }
}

async function recordEnded(
  ports: TaskPorts,
  task: Stored<AgentTask>,
  ended: EndedStep,
): Promise<{ requeueAfterMs?: number }> {
  const uid = task.metadata.uid
  if ('outcome' in ended) {
    const { condition, reason, message, status, events } = ended.outcome
    if (events) await append(ports, uid, events)
    await writeStatus(ports, task, { condition, status: 'True', reason, message, ...(status ? { patch: status } : {}) })
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
    return { requeueAfterMs: Math.min(5_000, 100 * 2 ** ended.failures) }
  }
  await appendIfRoom(ports, uid, [
    { type: 'error', code: failure.code, message: failure.message.slice(0, 60_000) },
    { type: 'stage', stage: stageOf[ended.name], state: 'failed', detail: failure.message.slice(0, 2_000) },
  ])
  const { condition, code, message, hint } = failure
  await writeStatus(ports, task, {
    condition,
    status: 'False',
    reason: code,
    message,
    // A cause the agent already ended with stays the task's cause.
    patch: task.status?.cause ? {} : { cause: causeOf(code, message, hint) },
  })
  return { requeueAfterMs: 0 }
}

async function createClaim(task: Stored<AgentTask>, ports: TaskPorts): Promise<void> {
  const { client } = ports
  const namespace = task.metadata.namespace ?? 'default'
  const pool = await poolFor(task, namespace, ports)
  if (pool.template) {
    const warmPool = {
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxWarmPool',
      metadata: { name: pool.name, namespace },
      spec: { replicas: 0, sandboxTemplateRef: { name: pool.template } },
    } as const
    await client.create(SandboxWarmPools, warmPool).catch(ignoreExisting)
  }
  await append(ports, task.metadata.uid, [
    { type: 'stage', stage: 'claim', state: 'started', detail: `pool ${pool.name}` },
  ])
  await client.create(SandboxClaims, claimFor(task, pool.name, ports.clock.now())).catch(ignoreExisting)
}

/** A sandbox's network is made when it starts: a task that is granted egress cannot take one that is already there. */
async function poolFor(
  task: Stored<AgentTask>,
  namespace: string,
  { client }: TaskPorts,
): Promise<{ name: string; template?: string }> {
  const pool = poolOf(task)
  if (pool.template || !task.spec.egress?.length) return pool
  const warm = await client.find(SandboxWarmPools, { namespace, name: pool.name })
  return warm ? coldPoolOf(warm.spec.sandboxTemplateRef.name) : pool
}

async function sandboxStatus(task: Stored<AgentTask>, ports: TaskPorts): Promise<Partial<AgentTaskStatus>> {
  const { namespace, name } = task.metadata
  const claim = await ports.client.get(SandboxClaims, { name, ...(namespace ? { namespace } : {}) })
  const sandboxName = claim.status?.sandbox?.name
  const isolation = ports.isolation
  return {
    sandbox: {
      claimName: name,
      ...(sandboxName ? { sandboxName, podName: sandboxName } : {}),
      ...(isolation ? { isolation } : {}),
    },
    ...(task.spec.egress ? { egress: task.spec.egress } : {}),
  }
}

/** The last event first, then the record: whoever reads the record finds the log complete. */
async function finish(
  task: Stored<AgentTask>,
  ending: { code: string; message: string; hint?: string },
  ports: TaskPorts,
): Promise<void> {
  const uid = task.metadata.uid
  const ok = ending.code === 'Succeeded'
  const recorded = task.status?.cause?.code === ending.code ? task.status.cause : undefined
  const cause = ok ? undefined : (recorded ?? causeOf(ending.code, ending.message, ending.hint))
  const usage = await ports.usageOf(uid)
  const change: StatusChange = {
    condition: endCondition,
    status: ok ? 'True' : 'False',
    reason: ending.code,
    message: ending.message,
    patch: { ...(cause ? { cause } : {}), ...(usage ? { usage } : {}) },
  }
  const { status } = withStatus(task, change, ports.clock.now())
  const tail = await tailIfRoom(ports, uid)
  if (!tail?.finished) {
    await appendIfRoom(ports, uid, [
      {
        type: 'result',
        status: status?.phase as 'SUCCEEDED' | 'FAILED' | 'TIMED_OUT' | 'CANCELLED',
        ...(status?.outcome ? { outcome: status.outcome } : {}),
        ...(cause ? { cause } : {}),
        ...(status?.pushed && status.branch ? { branch: status.branch } : {}),
        ...(status?.commit ? { commit: status.commit } : {}),
        ...(status?.diffStat
          ? {
              diff_stat: {
                files_changed: status.diffStat.filesChanged,
                insertions: status.diffStat.insertions,
                deletions: status.diffStat.deletions,
              },
            }
          : {}),
      },
    ])
  }
  const last = await tailIfRoom(ports, uid)
  await writeStatus(ports, task, { ...change, patch: { ...change.patch, lastEventSequence: last?.sequence ?? 0 } })
  if (!last?.finished) ports.eventLog.end(uid)
  ports.finished(task, ending.code)
}

async function writeStatus(ports: TaskPorts, task: Stored<AgentTask>, change: StatusChange): Promise<void> {
  await ports.client.updateStatus(AgentTasks, withStatus(task, change, ports.clock.now()))
  ports.log.info('task recorded', {
    task: task.metadata.name,
    condition: change.condition,
    status: change.status,
    reason: change.reason,
  })
}

async function append(ports: TaskPorts, uid: string, events: readonly TaskEventBody[]): Promise<void> {
  await ports.eventLog.append(uid, events)
}

/** How a task ended is recorded even where its log has no room left. */
async function appendIfRoom(ports: TaskPorts, uid: string, events: readonly TaskEventBody[]): Promise<void> {
  await append(ports, uid, events).catch((error: unknown) => {
    if (errorCode(error) !== 'DiskFull') throw error
    ports.log.error('the disk is full: the event log of a task is incomplete', { task: uid, error })
  })
}

/** Undefined where there was not even room to open the log. */
async function tailIfRoom(ports: TaskPorts, uid: string): Promise<EventLogTail | undefined> {
  return ports.eventLog.tail(uid).catch((error: unknown) => {
    if (errorCode(error) !== 'DiskFull') throw error
    return undefined
  })
}

function ignoreExisting(error: unknown): void {
  if (!isAlreadyExists(error)) throw error
}
