import * as z from 'zod'
import { taskPhaseSchema } from './task-state.js'
import { taskViewSchema } from './task-view.js'

/** `GET /groups/{name}`: attempts side by side, the first one first. */
export const groupViewSchema = z.object({
  name: z.string(),
  /** The branch that was asked for. */
  branch: z.string(),
  tasks: z.array(taskViewSchema),
  /** The attempt that was picked last, and how the task that pushes it stands. */
  picked: z.object({ task: z.string(), by: z.string(), status: taskPhaseSchema }).optional(),
})
export type GroupView = z.infer<typeof groupViewSchema>
