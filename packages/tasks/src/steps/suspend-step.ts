import { takeCheckpoint } from './checkpoints.js'
import type { Step } from './step.js'

/**
 * Takes the work tree out of a sandbox that is about to be given back; the session of the agent was kept when it ended,
 * and files of the request are part of the task. An agent that only planned changed nothing, so that a sandbox that does
 * not answer is given back all the same.
 */
export const suspendStep: Step = async (context) => {
  const { task, signal, log } = context
  try {
    const { daemon } = await context.openSandbox()
    await takeCheckpoint(daemon, context, `${task.metadata.uid}.suspend-${context.now().getTime()}`)
  } catch (error) {
    if (signal.aborted) throw error
    log.warn('the work tree of a waiting task was not taken out', { error })
  }
  return {
    condition: 'PlanApproved',
    conditionStatus: 'Unknown',
    reason: 'Suspended',
    message: 'waits for a decision without a sandbox',
  }
}
