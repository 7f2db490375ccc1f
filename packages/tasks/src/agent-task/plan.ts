import type { AgentTask, SandboxClaim, Stored } from '@corral/resources'
import { findCondition } from '@corral/resources'
import {
  endCondition,
  hasFailed,
  hasPassed,
  isFinished,
  type StageCondition,
  stage,
  stageConditions,
} from './stages.js'

/** Work that takes time and goes on beside the reconciler; each is safe to repeat. */
export type StepName = 'repository' | 'setup' | 'start-agent' | 'follow-agent' | 'stop-agent' | 'collect' | 'push'

/** The step a task is in, as this process knows it. After a restart there is none, and the step runs again. */
export interface StepState {
  name: StepName
  running: boolean
}

export interface TaskWorld {
  task: Stored<AgentTask>
  claim: Stored<SandboxClaim> | undefined
  step: StepState | undefined
  /** Whether the concurrency limit has room for this task. */
  mayStart: boolean
  /** The platform is on its way down. */
  stopping: boolean
  now: Date
}

export type EndReason = 'Cancelled' | 'Timeout' | 'PlatformStopped'

export interface Ending {
  /** `Succeeded`, or a cause of `protocol`. */
  code: string
  message: string
  hint?: string
}

export type TaskAction =
  | { kind: 'addFinalizer' | 'removeFinalizer' | 'createClaim' | 'deleteClaim' | 'abortStep' }
  | { kind: 'runStep'; step: StepName; reason?: EndReason }
  | { kind: 'record'; condition: StageCondition; reason: string; message: string }
  | { kind: 'finish'; ending: Ending }

export interface TaskPlan {
  actions: TaskAction[]
  requeueAfterMs?: number
}

export const taskLimits: { provisioningMs: number; sandboxLostGraceMs: number; defaultTimeoutSeconds: number } = {
  provisioningMs: 5 * 60_000,
  sandboxLostGraceMs: 30_000,
  defaultTimeoutSeconds: 1800,
}

export const taskFinalizer = 'corral.dev/task'

/** Reasons on a claim's Ready condition that no waiting cures. */
const hopelessReasons = new Set([
  'TemplateNotFound',
  'WarmPoolNotFound',
  'InvalidMetadata',
  'EnvVarsInjectionRejected',
  'VolumeClaimTemplatesError',
  'InvalidConfiguration',
])

/** Reasons that say the sandbox is gone or will not come back. */
const lostReasons = new Set(['PodFailed', 'PodSucceeded', 'ClaimExpired', 'SandboxExpired', 'SandboxMissing'])

/** What the task needs next. Pure: everything it knows is in `world`, including the time. */
export function planTask(world: TaskWorld): TaskPlan {
  const { task, claim } = world
  const deleting = task.metadata.deletionTimestamp !== undefined

  if (isFinished(task)) return afterTheEnd(world, deleting)
  if (deleting && !task.metadata.finalizers?.includes(taskFinalizer)) return { actions: [] }
  if (!task.metadata.finalizers?.includes(taskFinalizer)) return { actions: [{ kind: 'addFinalizer' }] }

  const end = endReason(world)
  if (!hasPassed(task, 'Admitted')) {
    if (end === 'PlatformStopped') return { actions: [] }
    if (end) return finish(world, endingFor(end, task))
    return world.mayStart ? record('Admitted', 'Scheduled', 'a place was free') : { actions: [] }
  }

  // What a stage could not do ends the task, unless the agent already ended with a cause of its own.
  const failed = stageConditions.find((type) => hasFailed(task, type))
  if (failed) return finish(world, agentEnding(task) ?? stageEnding(task, failed))

  if (hasPassed(task, 'ResultCollected')) return publish(world)
  if (hasPassed(task, 'AgentFinished'))
    return claim && !isLost(world) ? run(world, 'collect') : finish(world, agentEnding(task) ?? lost(world))
  if (hasPassed(task, 'AgentStarted')) return whileRunning(world, end)
  if (end) return finish(world, endingFor(end, task))
  return provision(world)
}

function provision(world: TaskWorld): TaskPlan {
  const { task, claim } = world
  if (!claim)
    return hasPassed(task, 'SandboxReady') ? finish(world, lost(world)) : { actions: [{ kind: 'createClaim' }] }
  const ready = findCondition(claim.status?.conditions ?? [], 'Ready')
  if (!hasPassed(task, 'SandboxReady')) {
    if (ready?.status === 'True' && claim.status?.sandbox?.name)
      return record('SandboxReady', 'ClaimReady', `sandbox ${claim.status.sandbox.name}`)
    if (ready && hopelessReasons.has(ready.reason)) return finish(world, claimFailed(ready.reason, ready.message))
    if (ready && lostReasons.has(ready.reason)) return finish(world, lost(world))
    const leftMs = timeLeftMs(stage(task, 'Admitted')?.lastTransitionTime, taskLimits.provisioningMs, world.now)
    if (leftMs <= 0) return finish(world, notReady(ready?.message))
    return { actions: [], requeueAfterMs: leftMs }
  }
  if (isLost(world)) return finish(world, lost(world))
  if (!hasPassed(task, 'RepositoryReady')) return run(world, 'repository')
  if (!hasPassed(task, 'SetupDone')) return run(world, 'setup')
  return run(world, 'start-agent')
}

function whileRunning(world: TaskWorld, end: EndReason | undefined): TaskPlan {
  if (isLost(world) || !world.claim) return finish(world, end ? endingFor(end, world.task) : lost(world))
  if (end) {
    if (world.step?.name === 'stop-agent') return run(world, 'stop-agent', end)
    const abort: TaskAction[] = world.step?.running ? [{ kind: 'abortStep' }] : []
    return { actions: [...abort, { kind: 'runStep', step: 'stop-agent', reason: end }] }
  }
  const plan = run(world, 'follow-agent')
  return { ...plan, requeueAfterMs: Math.max(1, deadlineMs(world.task) - world.now.getTime()) }
}

function publish(world: TaskWorld): TaskPlan {
  const { task } = world
  if (task.status?.outcome === 'changes' && !hasPassed(task, 'Pushed')) return run(world, 'push')
  return finish(world, agentEnding(task) ?? succeeded(task))
}

/** The record stands; only now may evidence go. */
function afterTheEnd({ task, claim, step }: TaskWorld, deleting: boolean): TaskPlan {
  const keep = task.spec.keepSandbox === true && stage(task, endCondition)?.status === 'False' && !deleting
  const actions: TaskAction[] = step?.running ? [{ kind: 'abortStep' }] : []
  if (claim && !keep) {
    if (!claim.metadata.deletionTimestamp) actions.push({ kind: 'deleteClaim' })
    return { actions }
  }
  if (deleting && !claim && task.metadata.finalizers?.includes(taskFinalizer)) actions.push({ kind: 'removeFinalizer' })
  return { actions }
}

function run(world: TaskWorld, step: StepName, reason?: EndReason): TaskPlan {
  if (world.step?.running && world.step.name === step) return { actions: [] }
  return { actions: [{ kind: 'runStep', step, ...(reason ? { reason } : {}) }] }
}

function finish(world: TaskWorld, ending: Ending): TaskPlan {
  const abort: TaskAction[] = world.step?.running ? [{ kind: 'abortStep' }] : []
  return { actions: [...abort, { kind: 'finish', ending }] }
}

function record(condition: StageCondition, reason: string, message: string): TaskPlan {
  return { actions: [{ kind: 'record', condition, reason, message }] }
}

/** Why the task should end although nothing failed: the user, the clock, or the platform says so. */
export function endReason({
  task,
  stopping,
  now,
}: Pick<TaskWorld, 'task' | 'stopping' | 'now'>): EndReason | undefined {
  if (task.spec.cancelRequested || task.metadata.deletionTimestamp) return 'Cancelled'
  if (hasPassed(task, 'AgentStarted') && now.getTime() >= deadlineMs(task)) return 'Timeout'
  return stopping ? 'PlatformStopped' : undefined
}

/** The timeout counts from the moment the agent runs. */
export function deadlineMs(task: AgentTask): number {
  const startedAt = task.status?.times?.runningAt ?? stage(task, 'AgentStarted')?.lastTransitionTime
  const timeoutSeconds = task.spec.timeoutSeconds ?? taskLimits.defaultTimeoutSeconds
  return startedAt ? Date.parse(startedAt) + timeoutSeconds * 1000 : Number.POSITIVE_INFINITY
}

/** The sandbox is gone, or has been away longer than a restart of its daemon takes. */
function isLost({ claim, now }: TaskWorld): boolean {
  if (!claim || claim.metadata.deletionTimestamp) return true
  const ready = findCondition(claim.status?.conditions ?? [], 'Ready')
  if (!ready || ready.status === 'True') return false
  if (lostReasons.has(ready.reason)) return true
  return timeLeftMs(ready.lastTransitionTime, taskLimits.sandboxLostGraceMs, now) <= 0
}

function timeLeftMs(since: string | undefined, limitMs: number, now: Date): number {
  return (since ? Date.parse(since) : now.getTime()) + limitMs - now.getTime()
}

function agentEnding(task: AgentTask): Ending | undefined {
  const finished = stage(task, 'AgentFinished')
  return finished && finished.reason !== 'Completed' ? { code: finished.reason, message: finished.message } : undefined
}

function stageEnding(task: AgentTask, type: StageCondition): Ending {
  const condition = stage(task, type)
  return { code: condition?.reason ?? 'InternalError', message: condition?.message ?? `stage ${type} failed` }
}

function succeeded(task: AgentTask): Ending {
  const message =
    task.status?.outcome === 'no_changes' ? 'the agent finished without a change' : 'the branch was pushed'
  return { code: 'Succeeded', message }
}

function endingFor(reason: EndReason, task: AgentTask): Ending {
  switch (reason) {
    case 'Cancelled':
      return { code: 'Cancelled', message: 'the task was cancelled' }
    case 'Timeout':
      return {
        code: 'Timeout',
        message: `the agent ran longer than ${task.spec.timeoutSeconds ?? taskLimits.defaultTimeoutSeconds} s`,
      }
    case 'PlatformStopped':
      return { code: 'PlatformStopped', message: 'the platform was stopped while the task ran' }
  }
}

function lost({ claim }: TaskWorld): Ending {
  const ready = findCondition(claim?.status?.conditions ?? [], 'Ready')
  const detail = ready ? `${ready.reason}: ${ready.message}` : 'its claim is gone'
  const code = /OOMKilled|out of memory/i.test(detail) ? 'OutOfMemory' : 'SandboxLost'
  return { code, message: `the sandbox was lost (${detail})` }
}

function claimFailed(reason: string, message: string): Ending {
  const code =
    reason === 'WarmPoolNotFound' ? 'PoolNotFound' : reason === 'TemplateNotFound' ? 'TemplateNotFound' : 'ClaimFailed'
  return { code, message: `the sandbox claim was refused (${reason}): ${message}` }
}

function notReady(message: string | undefined): Ending {
  return { code: 'SandboxNotReady', message: `no sandbox became ready in time${message ? `: ${message}` : ''}` }
}
