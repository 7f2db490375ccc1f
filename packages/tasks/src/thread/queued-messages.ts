import { createHash } from 'node:crypto'
import { findAgent, isCapable } from '@corral/agents'
import { messageText, type TaskMessageRequest } from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import { isRepairing } from '../checks/check-plan.js'
import { TaskError } from '../task-error.js'
import { hasPassed, isFinished, stage } from '../task-state/stages.js'

type QueuedMessage = NonNullable<AgentTask['spec']['messages']>[number]

/** On an ended task: the follow-up that its queued messages became. */
export const queuedFollowUpAnnotation = 'corral.dev/queued-follow-up'

/** `total` with those that were read: the list of a task only grows. */
const limits = { messages: 20, total: 200, characters: 256 * 1024 }

/**
 * The messages of a task that has not ended, with one more. The same id is queued once. `TooManyRequests` where more wait
 * than one follow-up can carry, and `TaskFinished` for a task that is being cancelled: nothing follows it.
 */
export function withMessage(
  task: Stored<AgentTask>,
  message: TaskMessageRequest,
  { id, now }: { id: string; now: Date },
): QueuedMessage[] {
  const { spec, metadata } = task
  const queued = spec.messages ?? []
  if (queued.some((known) => known.id === id)) return queued
  if (spec.cancelRequested || metadata.deletionTimestamp)
    throw new TaskError('TaskFinished', `task ${metadata.name} is being cancelled: nothing follows it`, {
      hint: 'Send the message again when it has ended.',
    })
  const text = messageText(message)
  const waiting = unread(task)
  const characters = waiting.reduce((sum, { text: other }) => sum + other.length, text.length)
  if (waiting.length >= limits.messages || queued.length >= limits.total || characters > limits.characters)
    throw new TaskError('TooManyRequests', `${queued.length} messages wait for the end of task ${metadata.name}`, {
      hint: 'Wait for its end, then send the rest.',
    })
  const { mode, new_branch: newBranch } = message
  const more = { ...(mode ? { mode } : {}), ...(newBranch ? { newBranch } : {}) }
  return [
    ...queued,
    { id, text, at: now.toISOString(), ...more, ...(isSteerable(task, message) ? { steer: true } : {}) },
  ]
}

/**
 * Whether a message can be given to the agent as it runs. One that wishes for a mode or a branch is about the follow-up. An
 * agent that ends meanwhile does not read it, and it becomes a follow-up after all.
 */
function isSteerable(task: AgentTask, { mode, new_branch: newBranch }: TaskMessageRequest): boolean {
  const capabilities = findAgent(task.spec.agent.name)?.capabilities
  if (!capabilities || !isCapable(capabilities, 'steer') || mode || newBranch) return false
  return hasPassed(task, 'AgentStarted') && (!hasPassed(task, 'AgentFinished') || isRepairing(task))
}

/** How a message of a task is delivered. */
export function deliveryOf(task: AgentTask, id: string): 'steered' | 'queued' {
  return task.spec.messages?.find((message) => message.id === id)?.steer ? 'steered' : 'queued'
}

/** The messages that the agent did not read while it ran. */
function unread({ spec, status }: AgentTask): QueuedMessage[] {
  return (spec.messages ?? []).filter(({ id }) => !status?.readMessages?.includes(id))
}

/** Whether messages that came while the task ran are to become a follow-up now. A cancelled task has none. */
export function needsFollowUp(task: Stored<AgentTask>): boolean {
  if (!isFinished(task) || unread(task).length === 0 || task.metadata.deletionTimestamp) return false
  if (stage(task, 'Succeeded')?.reason === 'Cancelled') return false
  return task.metadata.annotations?.[queuedFollowUpAnnotation] === undefined
}

/** All messages that were not read as one; the last one's wishes for mode and branch count. */
export function joinedMessages(task: AgentTask): TaskMessageRequest {
  const messages = unread(task)
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
