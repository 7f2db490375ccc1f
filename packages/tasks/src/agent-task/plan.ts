import type { AgentTask, SandboxClaim, Stored } from '@corral/resources'
import { findCondition } from '@corral/resources'
import { checksEnding, isPushWithheld, nextCheckMove } from '../checks/check-plan.js'
import { egressOf } from '../environment/phase-egress.js'
import { holdMove, inPlaceReason, isInPlace, type LetGoReason, letGoAnnotation } from '../held/hold.js'
import { isAwaitingApproval, whileWaiting } from '../plan-approval/await-approval.js'
import type { PlanDecision } from '../plan-approval/plan-decision.js'
import { hasProposedPlan } from '../plan-approval/plan-status.js'
import { questionExpiryMs, type TalkReport, unrecorded } from '../questions/question-status.js'
import type { Ending, EndReason } from '../task-state/ending.js'
import { isIncomplete } from '../task-state/group.js'
import {
  endCondition,
  hasFailed,
  hasPassed,
  isFinished,
  mayHaveStarted,
  type StageCondition,
  stage,
  stageConditions,
} from '../task-state/stages.js'
import { taskLimits } from '../task-state/task-limits.js'
import { taskFinalizer } from '../task-state/task-marks.js'
import { needsFollowUp } from '../thread/queued-messages.js'
import { claimFailed, egressUnsupported, hopelessReasons, lost, notReady, runtimeMissing } from './claim-endings.js'
import { deadlineMs, endingFor, endReason } from './deadline.js'
import type { PodProblem } from './pod-start.js'

/** Work that takes time and goes on beside the reconciler; each is safe to repeat. */
export type StepName =
  | 'repository'
  | 'setup'
  | 'start-agent'
  | 'follow-agent'
  | 'stop-agent'
  | 'check'
  | 'repair'
  | 'stop-checks'
  | 'collect'
  | 'push'
  | 'take-over'
  | 'salvage'
  | 'suspend'

/** The step a task is in, as this process knows it. After a restart there is none, and the step runs again. */
export interface StepState {
  name: StepName
  running: boolean
  /** It was told to stop and has not let go of everything yet. */
  aborting?: boolean
  /** Failures in a row. */
  failures?: number
  /** How the conversation with the agent stands, as the step last said. */
  report?: TalkReport
}

export interface TaskWorld {
  task: Stored<AgentTask>
  claim: Stored<SandboxClaim> | undefined
  step: StepState | undefined
  /** What keeps the pod of a claim that is not ready from starting, where that is known. */
  podProblem?: PodProblem | undefined
  /** Whether nodes let a task reach addresses by name; true where left out. */
  hasEgressByName?: boolean
  /** Whether the former task holds a sandbox that this one may take over. */
  isSandboxHeld?: boolean
  /** Whether a claim of this task's name is still in use by another task. */
  isClaimNameTaken?: boolean
  /** For an ended task that holds its sandbox: whether more are held than may be, and it is among the oldest. */
  isHeldOverLimit?: boolean
  /** Whether the concurrency limit has room for this task. */
  mayStart: boolean
  /** Whether another task waits for the place of this one. */
  isPlaceWanted?: boolean
  /** Why the broker refused a model call for the task's budget; undefined where it refused none. */
  budgetRefusal?: string | undefined
  now: Date
}

export type TaskAction =
  | { kind: 'addFinalizer' | 'removeFinalizer' | 'createClaim' | 'abortStep' }
  /** `onlyUnchanged`: as it was read, since a follow-up may have taken it over meanwhile. */
  | { kind: 'deleteClaim'; onlyUnchanged: boolean }
  /** Makes the attempts that a crash left unmade. */
  | { kind: 'completeGroup' }
  /** Takes over the sandbox the former task holds. */
  | { kind: 'takeClaim' }
  /** Notes on an ended task that its sandbox is no longer held. */
  | { kind: 'letGo'; reason: LetGoReason }
  | { kind: 'runStep'; step: StepName; reason?: EndReason; message?: string }
  | { kind: 'record'; condition: StageCondition; reason: string; message: string }
  /** Says what the sandbox waits for. */
  | { kind: 'recordWaiting'; reason: string; message: string }
  /** Says that the agent is about to be started, before it is. */
  | { kind: 'announceAgent' }
  /** Puts the agent's plan before a person. */
  | { kind: 'awaitApproval' }
  /** Gives the sandbox of a task that waits back. */
  | { kind: 'releaseSandbox' }
  | { kind: 'nextRun'; decision: PlanDecision }
  /** Records what the agent asks and has read. */
  | { kind: 'recordTalk'; report: TalkReport }
  /** Makes the follow-up that messages of an ended task wait for. */
  | { kind: 'continueThread' }
  /** Gives the sandbox up and begins with another one. */
  | { kind: 'startAgain'; attempt: number; message: string }
  | { kind: 'finish'; ending: Ending }

export interface TaskPlan {
  actions: TaskAction[]
  requeueAfterMs?: number
}

/** Timers of Node end at once beyond about 24 days. */
const longestTimerMs = 24 * 60 * 60_000

/** Reasons that say the sandbox is gone or will not come back. */
const lostReasons = new Set(['PodFailed', 'PodSucceeded', 'ClaimExpired', 'SandboxExpired', 'SandboxMissing'])

/** What the task needs next. Pure: everything it knows is in `world`, including the time. */
export function planTask(world: TaskWorld): TaskPlan {
  const { task } = world
  const deleting = task.metadata.deletionTimestamp !== undefined

  if (isFinished(task)) return afterTheEnd(world, deleting)
  if (deleting && !task.metadata.finalizers?.includes(taskFinalizer)) return { actions: [] }
  if (!task.metadata.finalizers?.includes(taskFinalizer)) return { actions: [{ kind: 'addFinalizer' }] }

  const report = unrecorded(task, world.step?.report)
  if (report) return { actions: [{ kind: 'recordTalk', report }] }
  const end = endReason(world)
  if (isAwaitingApproval(task)) return waitForDecision(world)
  if (!hasPassed(task, 'Admitted')) {
    if (end) return finish(world, endingFor(end, world))
    if (world.hasEgressByName === false && egressOf({ spec: task.spec }, 'setup').length > 0)
      return finish(world, egressUnsupported)
    if (isIncomplete(task)) return { actions: [{ kind: 'completeGroup' }] }
    // A push needs no sandbox, and so no place among those that have one.
    const mayStart = world.mayStart || task.spec.retry?.from === 'push'
    return mayStart ? record('Admitted', 'Scheduled', 'a place was free') : { actions: [] }
  }

  if (hasFailed(task, 'SandboxReady')) return end ? finish(world, endingFor(end, world)) : startAgain(world)
  // What a stage could not do ends the task, unless the agent already ended with a cause of its own.
  const failed = stageConditions.find((type) => hasFailed(task, type))
  if (failed) return finish(world, agentEnding(task) ?? stageEnding(task, failed))

  if (hasPassed(task, 'ResultCollected')) return publish(world, end)
  if (hasProposedPlan(task)) return { actions: [{ kind: 'awaitApproval' }] }
  // The retry of a push needs neither sandbox nor agent: the commits are in the record of the former task.
  if (task.spec.retry?.from === 'push') return end ? finish(world, endingFor(end, world)) : run(world, 'take-over')
  if (hasPassed(task, 'AgentFinished')) {
    if (isLost(world)) return instead(world, 'salvage')
    return withGrace(world, judge(world, end))
  }
  if (hasPassed(task, 'AgentStarted')) return whileRunning(world, end)
  if (end) return finish(world, endingFor(end, world))
  return provision(world)
}

function waitForDecision(world: TaskWorld): TaskPlan {
  const next = whileWaiting({
    task: world.task,
    isSandboxLost: isLost(world),
    isPlaceWanted: world.isPlaceWanted === true,
    isCancelled: endReason(world) === 'Cancelled',
    now: world.now,
  })
  // A decision does not wait for a sandbox that is being emptied: that has to let go first.
  const isBusy = world.step?.running === true
  switch (next.move) {
    case 'finish':
      return finish(world, next.ending)
    case 'go-on':
      return { actions: isBusy ? abortOf(world) : [{ kind: 'nextRun', decision: next.decision }] }
    case 'suspend':
      return run(world, 'suspend')
    case 'release':
      return { actions: isBusy ? abortOf(world) : [{ kind: 'releaseSandbox' }] }
    case 'wait':
      return withGrace(world, { actions: [], requeueAfterMs: next.requeueAfterMs })
  }
}

function provision(world: TaskWorld): TaskPlan {
  const { task, claim } = world
  const ready = findCondition(claim?.status?.conditions ?? [], 'Ready')
  if (!hasPassed(task, 'SandboxReady')) {
    if (!claim && world.isSandboxHeld) return { actions: [{ kind: 'takeClaim' }] }
    if (!claim && world.isClaimNameTaken) return { actions: [], requeueAfterMs: taskLimits.podLookMs }
    if (!claim) return { actions: [{ kind: 'createClaim' }] }
    // The claim of a sandbox that was given up: its name is free again once it is gone.
    if (claim.metadata.deletionTimestamp) return { actions: [] }
    if (ready?.status === 'True' && claim.status?.sandbox?.name)
      return record('SandboxReady', 'ClaimReady', `sandbox ${claim.status.sandbox.name}`)
    if (ready && hopelessReasons.has(ready.reason)) return finish(world, claimFailed(ready.reason, ready.message))
    if (ready && runtimeMissing.test(ready.message))
      return finish(world, { code: 'RuntimeUnavailable', message: ready.message })
    if (ready && lostReasons.has(ready.reason)) return startAgain(world)
    const since = task.status?.attempt?.startedAt ?? stage(task, 'Admitted')?.lastTransitionTime
    const leftMs = timeLeftMs(since, taskLimits.provisioningMs, world.now)
    return awaitPod(world, leftMs, ready?.message)
  }
  if (isLost(world)) return mayHaveStarted(task) ? finish(world, lost(world)) : startAgain(world)
  return withGrace(world, prepareAgent(world))
}

/** The sandbox is on its way: its pod is looked at, what holds it up is told, and some of that ends the wait early. */
function awaitPod({ podProblem, ...world }: TaskWorld, leftMs: number, readyMessage: string | undefined): TaskPlan {
  const waitedMs = taskLimits.provisioningMs - leftMs
  if (podProblem && (leftMs <= 0 || waitedMs >= podProblem.patienceMs))
    return finish(world, { code: podProblem.code, message: `${podProblem.reason}: ${podProblem.message}` })
  if (leftMs <= 0) return finish(world, notReady(readyMessage))
  const told = stage(world.task, 'SandboxReady')
  const isNews = podProblem && told?.reason !== podProblem.reason
  return {
    actions: isNews ? [{ kind: 'recordWaiting', reason: podProblem.reason, message: podProblem.message }] : [],
    requeueAfterMs: Math.min(leftMs, taskLimits.podLookMs),
  }
}

function prepareAgent(world: TaskWorld): TaskPlan {
  const { task } = world
  if (!hasPassed(task, 'RepositoryReady')) return run(world, 'repository')
  if (!hasPassed(task, 'SetupDone'))
    return isInPlace(task) ? record('SetupDone', inPlaceReason, 'the sandbox is set up already') : run(world, 'setup')
  return mayHaveStarted(task) ? run(world, 'start-agent') : { actions: [{ kind: 'announceAgent' }] }
}

/** The sandbox was lost and nothing of the agent with it: another one may do. */
function startAgain(world: TaskWorld): TaskPlan {
  const attempt = (world.task.status?.attempt?.number ?? 1) + 1
  const ending = hasFailed(world.task, 'SandboxReady') ? stageEnding(world.task, 'SandboxReady') : lost(world)
  if (attempt > taskLimits.attempts) return finish(world, ending)
  return { actions: [...abortOf(world), { kind: 'startAgain', attempt, message: ending.message }] }
}

function whileRunning(world: TaskWorld, end: EndReason | undefined): TaskPlan {
  if (isLost(world)) return agentGone(world, end ? endingFor(end, world) : lost(world))
  if (end) {
    if (world.step?.name === 'stop-agent') return withGrace(world, run(world, 'stop-agent', end))
    if (world.step?.aborting) return { actions: [] }
    if (world.step?.running) return { actions: [{ kind: 'abortStep' }] }
    return { actions: [{ kind: 'runStep', step: 'stop-agent', reason: end }] }
  }
  const plan = withGrace(world, run(world, 'follow-agent'))
  const untilMs = questionExpiryMs(world.task) ?? deadlineMs(world.task, world.now)
  const leftMs = Math.min(longestTimerMs, Math.max(1, untilMs - world.now.getTime()))
  return { ...plan, requeueAfterMs: Math.min(leftMs, plan.requeueAfterMs ?? leftMs) }
}

/** Checks judge the work before it is taken out; what they find goes back to the agent. */
function judge(world: TaskWorld, end: EndReason | undefined): TaskPlan {
  const { task, step, budgetRefusal, now } = world
  const next = nextCheckMove({ task, isCancelled: end === 'Cancelled', budgetRefusal, now })
  switch (next.move) {
    case 'over':
      return run(world, 'collect')
    case 'check':
      return run(world, 'check')
    case 'repair':
      return { ...run(world, 'repair'), requeueAfterMs: Math.max(1, next.deadlineMs - now.getTime()) }
    case 'stop': {
      if (step?.running && step.name !== 'stop-checks') return { actions: abortOf(world) }
      if (step?.running) return { actions: [] }
      return { actions: [{ kind: 'runStep', step: 'stop-checks', reason: next.reason, message: next.message }] }
    }
  }
}

/** The agent went with its sandbox. That is recorded first; the work is then what checkpoints took out before. */
function agentGone(world: TaskWorld, { code, message }: Ending): TaskPlan {
  return { actions: [...abortOf(world), { kind: 'record', condition: 'AgentFinished', reason: code, message }] }
}

/** Runs a step in place of another one, which has to let go first. */
function instead(world: TaskWorld, step: StepName): TaskPlan {
  if (world.step?.running && world.step.name !== step) return { actions: abortOf(world) }
  return run(world, step)
}

function publish(world: TaskWorld, end: EndReason | undefined): TaskPlan {
  const { task, step } = world
  const isChanged = (task.status?.outcome ?? 'no_changes') !== 'no_changes'
  const isPushing = isChanged && !hasPassed(task, 'Pushed') && !isPushWithheld(task)
  // A remote that is away is asked again for a long time; a user may not want to wait for it.
  if (isPushing && end === 'Cancelled' && step?.name === 'push' && (step.failures ?? 0) > 0)
    return finish(world, endingFor(end, world))
  if (isPushing) return run(world, 'push')
  return finish(world, agentEnding(task) ?? checksEnding(task) ?? lostResult(task) ?? succeeded(task))
}

/** The record stands; only now may evidence go. */
function afterTheEnd(world: TaskWorld, deleting: boolean): TaskPlan {
  const { task, claim, step, now, isHeldOverLimit = false } = world
  const wanted = task.spec.keepSandbox === true && stage(task, endCondition)?.status === 'False'
  const isLetGo = task.metadata.annotations?.[letGoAnnotation] !== undefined
  const keep = (wanted || task.status?.sandbox?.kept === true) && !deleting && !isLetGo
  const actions: TaskAction[] = step?.running && !step.aborting ? [{ kind: 'abortStep' }] : []
  // The follow-up that waits for the end may take the sandbox over: it is made before anything goes.
  if (needsFollowUp(task)) return { actions: [...actions, { kind: 'continueThread' }] }
  const next = holdMove({
    task,
    hasClaim: claim !== undefined,
    isSandboxLost: isLost(world),
    isOverLimit: isHeldOverLimit,
    now,
  })
  if (next.move === 'hold') return withGrace(world, { actions, requeueAfterMs: next.requeueAfterMs })
  if (next.move === 'let-go') return { actions: [...actions, { kind: 'letGo', reason: next.reason }] }
  if (claim && !keep) {
    const onlyUnchanged = task.status?.sandbox?.heldUntil !== undefined
    if (!claim.metadata.deletionTimestamp) actions.push({ kind: 'deleteClaim', onlyUnchanged })
    return { actions }
  }
  // Removing the finalizer also removes the record; a step that still runs could write to it.
  if (deleting && !claim && !step?.running && task.metadata.finalizers?.includes(taskFinalizer))
    actions.push({ kind: 'removeFinalizer' })
  return { actions }
}

function run(world: TaskWorld, step: StepName, reason?: EndReason): TaskPlan {
  if (world.step?.running) return { actions: [] }
  return { actions: [{ kind: 'runStep', step, ...(reason ? { reason } : {}) }] }
}

function finish(world: TaskWorld, ending: Ending): TaskPlan {
  return { actions: [...abortOf(world), { kind: 'finish', ending }] }
}

function abortOf({ step }: TaskWorld): TaskAction[] {
  return step?.running && !step.aborting ? [{ kind: 'abortStep' }] : []
}

function record(condition: StageCondition, reason: string, message: string): TaskPlan {
  return { actions: [{ kind: 'record', condition, reason, message }] }
}

/** The sandbox is gone, or has been away longer than a restart of its daemon takes. */
function isLost(world: TaskWorld): boolean {
  const { claim } = world
  if (!claim || claim.metadata.deletionTimestamp) return true
  const ready = findCondition(claim.status?.conditions ?? [], 'Ready')
  if (ready && ready.status !== 'True' && lostReasons.has(ready.reason)) return true
  return (graceLeftMs(world) ?? 1) <= 0
}

/** What is left of the time a sandbox may be away; undefined while it is there. */
function graceLeftMs({ claim, now }: TaskWorld): number | undefined {
  const ready = findCondition(claim?.status?.conditions ?? [], 'Ready')
  if (!ready || ready.status === 'True') return undefined
  return timeLeftMs(ready.lastTransitionTime, taskLimits.sandboxLostGraceMs, now)
}

/** Nothing else may happen while a sandbox is away: its end is looked at when the grace is over. */
function withGrace(world: TaskWorld, plan: TaskPlan): TaskPlan {
  const leftMs = graceLeftMs(world)
  if (leftMs === undefined) return plan
  return { ...plan, requeueAfterMs: Math.min(Math.max(1, leftMs), plan.requeueAfterMs ?? leftMs) }
}

function timeLeftMs(since: string | undefined, limitMs: number, now: Date): number {
  return (since ? Date.parse(since) : now.getTime()) + limitMs - now.getTime()
}

function agentEnding(task: AgentTask): Ending | undefined {
  const finished = stage(task, 'AgentFinished')
  return finished && finished.reason !== 'Completed' ? { code: finished.reason, message: finished.message } : undefined
}

/** The agent was done, and its work could not be taken out: its sandbox went before, or it made that impossible. */
function lostResult(task: AgentTask): Ending | undefined {
  const collected = stage(task, 'ResultCollected')
  if (collected?.reason === 'NotTakenOut') return { code: 'ResultFailed', message: collected.message }
  const isLoss = collected?.reason === 'Lost' || collected?.reason === 'FromCheckpoint'
  return isLoss ? { code: 'SandboxLost', message: collected.message } : undefined
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
