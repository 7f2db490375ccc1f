import type { AgentTask, Stored } from '@corral/resources'
import type { Ending } from '../task-state/ending.js'
import { hasPassed, isFinished, stage } from '../task-state/stages.js'

/** On an ended task: its sandbox is no longer held, and why. Written before the sandbox goes. */
export const letGoAnnotation = 'corral.dev/sandbox-let-go'

/** Why a held sandbox is let go before its time. */
export type LetGoReason = 'released' | 'limit' | 'lost' | 'gone'

/**
 * Until when the sandbox of a task that ends now stays for a follow-up; undefined where it goes at once. A task that was
 * cancelled holds none, nor one whose work could not be taken out of its sandbox: that one is kept, or lost.
 */
export function heldUntilOf(task: AgentTask, ending: Pick<Ending, 'code'>, now: Date): Date | undefined {
  const holdSeconds = task.spec.holdSandboxSeconds ?? 0
  if (holdSeconds === 0 || ending.code === 'Cancelled' || task.spec.cancelRequested) return undefined
  if (!task.status?.sandbox?.sandboxName || task.status.sandbox.kept) return undefined
  if (task.spec.keepSandbox === true && ending.code !== 'Succeeded') return undefined
  const collected = stage(task, 'ResultCollected')?.reason
  if (!hasPassed(task, 'AgentFinished') || (collected !== 'Accepted' && collected !== 'NoChanges')) return undefined
  return new Date(now.getTime() + holdSeconds * 1000)
}

/** How long the task still holds its sandbox for a follow-up; undefined where it does not. */
export function holdLeftMs({ metadata, ...task }: Stored<AgentTask>, now: Date): number | undefined {
  const until = task.status?.sandbox?.heldUntil
  if (until === undefined || !isFinished({ metadata, ...task }) || metadata.deletionTimestamp) return undefined
  if (metadata.annotations?.[letGoAnnotation] !== undefined) return undefined
  const leftMs = Date.parse(until) - now.getTime()
  return leftMs > 0 ? leftMs : undefined
}

export interface HoldWorld {
  task: Stored<AgentTask>
  /** Whether the claim is there and this task's. */
  hasClaim: boolean
  isSandboxLost: boolean
  /** Whether more sandboxes are held than may be, and this one is among the oldest. */
  isOverLimit: boolean
  now: Date
}

export type HoldMove =
  | { move: 'hold'; requeueAfterMs: number }
  /** Noted first; the sandbox goes on a pass that has read the note back. */
  | { move: 'let-go'; reason: LetGoReason }
  /** Nothing is held: the sandbox, where there is one, may go. */
  | { move: 'none' }

/** What becomes of the sandbox of an ended task. Pure. */
export function holdMove({ task, hasClaim, isSandboxLost, isOverLimit, now }: HoldWorld): HoldMove {
  const leftMs = holdLeftMs(task, now)
  if (leftMs === undefined) return { move: 'none' }
  // A follow-up took it over, or a user deleted it.
  if (!hasClaim) return { move: 'let-go', reason: 'gone' }
  if (isSandboxLost) return { move: 'let-go', reason: 'lost' }
  if (isOverLimit) return { move: 'let-go', reason: 'limit' }
  return { move: 'hold', requeueAfterMs: leftMs }
}

/** The work tree of the former task is still there: nothing was cloned and nothing is set up again. */
export const inPlaceReason = 'InPlace'

export function isInPlace(task: AgentTask): boolean {
  return stage(task, 'RepositoryReady')?.reason === inPlaceReason
}
