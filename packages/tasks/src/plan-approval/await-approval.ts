import { type AgentTask, defaultHoldSandboxSeconds } from '@corral/resources'
import type { Ending } from '../task-state/ending.js'
import { hasPassed, stage } from '../task-state/stages.js'
import { decisionOf, isExpired, type PlanDecision } from './plan-decision.js'

export interface WaitingWorld {
  task: AgentTask
  /** Whether the sandbox is gone, or does not come back. */
  isSandboxLost: boolean
  /** Whether another task waits for the place this one holds with its sandbox. */
  isPlaceWanted: boolean
  isCancelled: boolean
  now: Date
}

export type WaitingMove =
  | { move: 'finish'; ending: Ending }
  /** The agent runs again: it carries the plan out, or plans once more. */
  | { move: 'go-on'; decision: PlanDecision }
  /** What is in the sandbox is taken out, so that it can be given back. */
  | { move: 'suspend' }
  /** The sandbox is given back; everything the task needs of it is in the record. */
  | { move: 'release' }
  | { move: 'wait'; requeueAfterMs: number }

/** What a task does whose plan waits for a person. Its timeout stands still meanwhile. */
export function whileWaiting(world: WaitingWorld): WaitingMove {
  const { task, now } = world
  if (world.isCancelled) return { move: 'finish', ending: { code: 'Cancelled', message: 'the task was cancelled' } }
  const decision = decisionOf(task)
  if (decision?.verdict === 'reject') return { move: 'finish', ending: rejected(decision) }
  if (decision) return { move: 'go-on', decision }
  if (isExpired(task, now)) return { move: 'finish', ending: expired(task) }
  const untilExpiryMs = msUntil(task.status?.plan?.expiresAt, now)
  if (!hasPassed(task, 'SandboxReady')) return { move: 'wait', requeueAfterMs: untilExpiryMs }
  if (world.isSandboxLost || stage(task, 'PlanApproved')?.reason === 'Suspended') return { move: 'release' }
  const holdMs = (task.spec.holdSandboxSeconds ?? defaultHoldSandboxSeconds) * 1000
  const heldUntil = Date.parse(task.status?.plan?.proposedAt ?? '') + holdMs
  const leftMs = heldUntil - now.getTime()
  if (leftMs <= 0 || world.isPlaceWanted) return { move: 'suspend' }
  return { move: 'wait', requeueAfterMs: Math.min(leftMs, untilExpiryMs) }
}

/** Whether a person has to decide before the task goes on. */
export function isAwaitingApproval(task: AgentTask): boolean {
  return stage(task, 'PlanApproved')?.status === 'Unknown'
}

function rejected({ remark }: PlanDecision): Ending {
  return { code: 'Cancelled', message: remark ? `the plan was rejected: ${remark}` : 'the plan was rejected' }
}

function expired({ status }: AgentTask): Ending {
  return {
    code: 'PlanExpired',
    message: `the plan was neither approved nor rejected until ${status?.plan?.expiresAt ?? ''}`,
  }
}

/** Timers of Node end at once beyond about 24 days. */
const longestWaitMs = 24 * 60 * 60 * 1000

function msUntil(time: string | undefined, now: Date): number {
  return Math.min(longestWaitMs, Math.max(1, Date.parse(time ?? '') - now.getTime()))
}
