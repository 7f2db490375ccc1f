import type { PlanVerdict } from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { isFinished, phaseOf } from '../task-state/stages.js'

export type PlanDecision = NonNullable<AgentTask['spec']['decision']>

/** What was decided about the plan a task waits with; undefined while it waits, and for decisions about earlier ones. */
export function decisionOf({ spec, status }: AgentTask): PlanDecision | undefined {
  return spec.decision && spec.decision.revision === status?.plan?.revision ? spec.decision : undefined
}

/**
 * Refuses a decision that does not fit the plan: twice, late, about a revision that was replaced, or where there is none.
 * The message says which.
 */
export function checkDecision(task: Stored<AgentTask>, revision: number, now: Date): void {
  const { plan } = task.status ?? {}
  const { name } = task.metadata
  const decided = plan && (decisionOf(task)?.verdict ?? plan.verdict)
  if (plan && revision === plan.revision && decided)
    throw new TaskError('PlanDecided', `revision ${revision} of the plan was already ${decidedWords[decided]}`)
  if (plan && (isExpired(task, now) || task.status?.cause?.code === 'PlanExpired'))
    throw new TaskError('PlanExpired', `the plan of task ${name} expired at ${plan.expiresAt}`, {
      hint: `Go on with \`corral task send ${name} "..."\`; the agent remembers its plan.`,
    })
  if (isFinished(task)) throw new TaskError('TaskFinished', `task ${name} has already ended (${phaseOf(task)})`)
  if (!plan)
    throw new TaskError(
      'PlanMissing',
      `task ${name} has no plan ${task.spec.mode === 'plan' ? 'yet' : 'to decide about'}`,
      {
        hint:
          task.spec.mode === 'plan'
            ? `It is ${phaseOf(task)}; follow it with \`corral task watch ${name}\`.`
            : 'Ask for one with `corral run --plan`, or `mode: "plan"`.',
      },
    )
  if (revision !== plan.revision)
    throw new TaskError('PlanRevised', `the plan is at revision ${plan.revision}, the decision is about ${revision}`, {
      hint: `Read it with \`corral task plan ${name}\`, then decide again.`,
    })
}

export function isExpired({ status }: AgentTask, now: Date): boolean {
  return status?.plan !== undefined && status.plan.verdict === undefined && now >= new Date(status.plan.expiresAt)
}

const decidedWords: Readonly<Record<PlanVerdict, string>> = {
  approve: 'approved',
  revise: 'sent back to be revised',
  reject: 'rejected',
}
