import { createHash } from 'node:crypto'
import { messageText, type TaskMessageRequest } from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import { isFinished, stage } from '../agent-task/stages.js'
import { TaskError } from '../task-error.js'

type QueuedMessage = NonNullable<AgentTask['spec']['messages']>[number]

/** On an ended task: the follow-up that its queued messages became. */
export const queuedFollowUpAnnotation = 'corral.dev/queued-follow-up'

const limits = { messages: 20, characters: 256 * 1024 }

/**
 * The messages of a task that has not ended, with one more. The same id is queued once. `TooManyRequests` where more wait
 * than one follow-up can carry, and `TaskFinished` for a task that is being cancelled: nothing follows it.
 */
export function withMessage(
  { spec, metadata }: Stored<AgentTask>,
  message: TaskMessageRequest,
  { id, now }: { id: string; now: Date },
): QueuedMessage[] {
  const queued = spec.messages ?? []
  if (queued.some((known) => known.id === id)) return queued
  if (spec.cancelRequested || metadata.deletionTimestamp)
    throw new TaskError('TaskFinished', `task ${metadata.name} is being cancelled: nothing follows it`, {
      hint: 'Send the message again when it has ended.',
    })
  const text = messageText(message)
  const characters = queued.reduce((sum, { text: other }) => sum + other.length, text.length)
  if (queued.length >= limits.messages || characters > limits.characters)
    throw new TaskError('TooManyRequests', `${queued.length} messages wait for the end of task ${metadata.name}`, {
      hint: 'Wait for its end, then send the rest.',
    })
  const { mode, new_branch: newBranch } = message
  return [
    ...queued,
    { id, text, at: now.toISOString(), ...(mode ? { mode } : {}), ...(newBranch ? { newBranch } : {}) },
  ]
}

/** Whether messages that came while the task ran are to become a follow-up now. A cancelled task has none. */
export function needsFollowUp(task: Stored<AgentTask>): boolean {
  if (!isFinished(task) || !task.spec.messages?.length || task.metadata.deletionTimestamp) return false
  if (stage(task, 'Succeeded')?.reason === 'Cancelled') return false
  return task.metadata.annotations?.[queuedFollowUpAnnotation] === undefined
}

/** All queued messages as one; the last one's wishes for mode and branch count. */
export function joinedMessages({ spec }: AgentTask): TaskMessageRequest {
  const messages = spec.messages ?? []
  const mode = messages.findLast((message) => message.mode !== undefined)?.mode
  const newBranch = messages.findLast((message) => message.newBranch !== undefined)?.newBranch
  return {
    task: messages.map(({ text }) => text).join('\n\n'),
    ...(mode ? { mode } : {}),
    ...(newBranch ? { new_branch: newBranch } : {}),
  }
}

/** The same for every pass, so that a pass that is repeated finds the task it made. */
export function queuedFollowUpName(uid: string): string {
  return `task-${createHash('sha256').update(`messages of ${uid}`).digest('hex').slice(0, 10)}`
}
