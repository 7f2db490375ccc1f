import * as z from 'zod'

/** Of a task that is one of several attempts. */
export const taskGroupSchema = z.object({
  name: z.string(),
  /** Which attempt this is, counted from 1, and how many there are. */
  number: z.number().int().positive(),
  size: z.number().int().positive(),
  /** The branch that was asked for; the attempt that is picked gets it. */
  branch: z.string(),
  /** On a task that only pushes the attempt that was picked. */
  pick: z.number().int().positive().optional(),
})
export type TaskGroup = z.infer<typeof taskGroupSchema>

/** `POST /tasks/{id}/pick`; the body may be left out. */
export const pickTaskRequestSchema = z.strictObject({
  /** Gives the branch to this attempt although another one has it. */
  force: z.boolean().optional(),
})
export type PickTaskRequest = z.infer<typeof pickTaskRequestSchema>
