import type { AgentTask } from '@corral/resources'

/** What the agent is told in a run after the first: how its plan was taken. */
export function runPrompt({ spec }: AgentTask): string {
  const { verdict, plan, remark } = spec.decision ?? {}
  if (verdict === 'revise') return `${remark ?? ''}\n\nRevise your plan accordingly. Change nothing yet.`
  return [
    plan ? `Your plan was changed and approved. This is the plan now:\n\n${plan}` : 'Your plan is approved.',
    ...(remark ? [remark] : []),
    'Carry it out.',
  ].join('\n\n')
}

/** The same for an agent that remembers nothing: with the task, and the plan it is about. */
export function runPromptWithoutSession(task: AgentTask): string {
  const { spec, status } = task
  const isEdited = spec.decision?.plan !== undefined
  const plan = isEdited ? [] : [`Your plan for it was:\n\n${status?.plan?.text ?? ''}`]
  return [spec.prompt, ...plan, runPrompt(task)].join('\n\n')
}
