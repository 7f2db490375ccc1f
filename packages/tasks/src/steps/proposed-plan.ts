import { clipText, eventLimits } from '@corral/protocol'
import { defaultPlanExpirySeconds } from '@corral/resources'
import type { StepContext, StepOutcome } from './step.js'

/** What an agent that has planned amounts to: its plan, or a failure where it said nothing. */
export function proposedPlan({ task, now }: Pick<StepContext, 'task' | 'now'>, text: string | undefined): StepOutcome {
  if (text === undefined || text.trim() === '')
    return {
      condition: 'AgentFinished',
      reason: 'AgentFailed',
      message: 'the agent ended without a plan',
      events: [{ type: 'stage', stage: 'agent', state: 'failed', detail: 'no plan' }],
    }
  const revision = (task.status?.plan?.revision ?? 0) + 1
  const plan = clipText(text, eventLimits.textCharacters)
  const proposedAt = now()
  const expiresAt = new Date(proposedAt.getTime() + (task.spec.planExpirySeconds ?? defaultPlanExpirySeconds) * 1000)
  return {
    condition: 'AgentFinished',
    reason: 'Planned',
    message: `revision ${revision} of the plan`,
    status: {
      plan: { revision, text: plan, proposedAt: proposedAt.toISOString(), expiresAt: expiresAt.toISOString() },
    },
    events: [{ type: 'plan', revision, text: plan }],
  }
}
