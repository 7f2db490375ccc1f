import * as z from 'zod'
import { type TaskView, taskViewSchema } from './task-view.js'

/** A row of a list of tasks: the task without what only its own page shows, such as the prompt and the command. */
export const taskSummarySchema = taskViewSchema
  .omit({ task: true, instructions: true, mcp_servers: true, egress: true, refused: true })
  .extend({
    /** The first line of the prompt. */
    title: z.string(),
    agent: z.looseObject({ name: z.string(), model: z.string().optional() }),
    /** Without its text. */
    plan: z.object({ revision: z.number().int().positive(), verdict: z.string().optional() }).optional(),
    /** Without what they ask. */
    questions: z.array(z.object({ id: z.string(), outcome: z.string().optional() })).optional(),
  })
export type TaskSummary = z.infer<typeof taskSummarySchema>

const titleCharacters = 200

export function summaryOf(view: TaskView): TaskSummary {
  const { task, instructions: _, mcp_servers: __, egress: ___, refused: ____, questions, agent, plan, ...rest } = view
  const { name, model } = agent
  return {
    ...rest,
    title: titleOf(task),
    agent: { name, ...(model === undefined ? {} : { model }) },
    ...(plan ? { plan: planOf(plan) } : {}),
    ...(questions ? { questions: questions.map(({ id, outcome }) => ({ id, ...(outcome ? { outcome } : {}) })) } : {}),
  }
}

function planOf({ revision, verdict }: NonNullable<TaskView['plan']>): NonNullable<TaskSummary['plan']> {
  return { revision, ...(verdict === undefined ? {} : { verdict }) }
}

/** The first line that says something. */
export function titleOf(prompt: string): string {
  const line =
    prompt
      .slice(0, 4096)
      .split('\n')
      .find((text) => text.trim() !== '')
      ?.trim() ?? ''
  return line.length > titleCharacters ? `${line.slice(0, titleCharacters - 1)}…` : line
}
