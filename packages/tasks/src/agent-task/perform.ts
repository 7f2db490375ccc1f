import {
  type AgentTask,
  type AgentTaskStatus,
  AgentTasks,
  isAlreadyExists,
  type SandboxClaim,
  SandboxClaims,
  type Stored,
} from '@corral/resources'
import { deleteClaim } from '../held/find-claim.js'
import { noteLetGo } from '../held/release.js'
import { taskFinalizer } from '../task-state/task-marks.js'
import { eventsOf } from './action-events.js'
import { claimFor, ensurePool, namesNoPool, poolOf } from './claim.js'
import { completeGroup } from './complete-group.js'
import { continueThread } from './continue-thread.js'
import { finishTask } from './finish.js'
import { performWaiting } from './perform-waiting.js'
import type { TaskAction } from './plan.js'
import { findPodName } from './pod-eviction.js'
import { recordTalk } from './record-talk.js'
import { append, writeStatus } from './recording.js'
import { sandboxRecord } from './sandbox-record.js'
import { takeClaim } from './take-claim.js'
import type { TaskPorts } from './task-ports.js'
import { startedAgain } from './task-status.js'

/** A task and its claim, or the one it may take over. */
interface Found {
  task: Stored<AgentTask>
  claim: Stored<SandboxClaim> | undefined
}

/** Carries one action out. Each is safe to repeat: a pass that fails halfway leaves the next one the same plan. */
export async function perform(action: TaskAction, { task, claim }: Found, ports: TaskPorts): Promise<void> {
  const { client, steps } = ports
  const uid = task.metadata.uid
  switch (action.kind) {
    case 'addFinalizer':
      return setFinalizers(task, [...(task.metadata.finalizers ?? []), taskFinalizer], ports)
    case 'removeFinalizer': {
      steps.forget(uid)
      await ports.records.remove(uid)
      const others = (task.metadata.finalizers ?? []).filter((name) => name !== taskFinalizer)
      return setFinalizers(task, others, ports)
    }
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
      if (claim) await deleteClaim(client, claim, { onlyUnchanged: action.onlyUnchanged })
      return
    case 'abortStep':
      steps.abort(uid)
      return
    case 'runStep': {
      const { step, reason, message } = action
      await tell(action, task, ports)
      steps.start(uid, step, (signal, progress) => ports.runStep(step, task, { reason, message }, signal, progress))
      return
    }
    case 'record': {
      const patch = action.condition === 'SandboxReady' && claim ? await readSandbox(task, claim, ports) : {}
      await tell(action, task, ports)
      return writeStatus(ports, task, { ...action, status: 'True', patch })
    }
    case 'recordWaiting':
      await tell(action, task, ports)
      return writeStatus(ports, task, { ...action, condition: 'SandboxReady', status: 'Unknown' })
    case 'announceAgent':
      return writeStatus(ports, task, { ...agentAnnounced, status: 'Unknown' })
    case 'awaitApproval':
    case 'releaseSandbox':
    case 'nextRun':
      return performWaiting(action, task, ports)
    case 'recordTalk':
      return recordTalk(action.report, task, ports)
    case 'continueThread':
      return continueThread(task, ports)
    case 'startAgain':
      return startAgain(action, { task, claim }, ports)
    case 'finish':
      return finishTask(task, action.ending, ports)
  }
}

const agentAnnounced = { condition: 'AgentStarted', reason: 'Starting', message: 'the agent is being started' } as const

async function tell(action: TaskAction, task: Stored<AgentTask>, ports: TaskPorts): Promise<void> {
  const events = eventsOf(action)
  if (events.length > 0) await append(ports, task.metadata.uid, events)
}

async function setFinalizers(task: Stored<AgentTask>, finalizers: string[], { client }: TaskPorts): Promise<void> {
  await client.update(AgentTasks, { ...task, metadata: { ...task.metadata, finalizers } })
}

/** The claim first: without it the next pass comes here again, with it the old sandbox would be taken for the new one. */
async function startAgain(
  action: Extract<TaskAction, { kind: 'startAgain' }>,
  { task, claim }: Found,
  ports: TaskPorts,
): Promise<void> {
  const { attempt, message } = action
  if (claim) await deleteClaim(ports.client, claim)
  await tell(action, task, ports)
  await ports.client.updateStatus(AgentTasks, startedAgain(task, { attempt, message }, ports.clock.now()))
  ports.log.warn('task started again', { task: task.metadata.name, attempt, message })
}

async function createClaim(task: Stored<AgentTask>, ports: TaskPorts): Promise<void> {
  const { client } = ports
  const namespace = task.metadata.namespace ?? 'default'
  const pool = poolOf(task, namesNoPool(task) ? await ports.ensurePool() : undefined)
  ports.fetchAhead?.(task)
  await ensurePool(client, namespace, pool)
  await append(ports, task.metadata.uid, [
    { type: 'stage', stage: 'claim', state: 'started', detail: `pool ${pool.name}` },
  ])
  await client.create(SandboxClaims, claimFor(task, pool.name, ports.clock.now())).catch(ignoreExisting)
}

async function readSandbox(
  task: Stored<AgentTask>,
  claim: Stored<SandboxClaim>,
  { client, isolation, provider }: TaskPorts,
): Promise<Partial<AgentTaskStatus>> {
  const sandboxName = claim.status?.sandbox?.name
  const namespace = task.metadata.namespace ?? 'default'
  const podName = sandboxName ? await findPodName(client, namespace, sandboxName) : undefined
  return sandboxRecord({ task, claim, podName, isolation, provider })
}

function ignoreExisting(error: unknown): void {
  if (!isAlreadyExists(error)) throw error
}
