import * as z from 'zod'
import { type agentTaskFileSchema, agentTaskSpecSchema } from './agent-task-spec.js'
import { agentTaskStatusSchema } from './agent-task-status.js'
import { typeMeta } from './schema-parts.js'

export { agentTaskFileSchema, agentTaskSpecSchema } from './agent-task-spec.js'
export { agentTaskStatusSchema } from './agent-task-status.js'

export const agentTaskSchema = z
  .object({
    ...typeMeta('corral.dev/v1alpha1', 'AgentTask'),
    spec: agentTaskSpecSchema,
    status: agentTaskStatusSchema.exactOptional(),
  })
  .describe('A piece of work for a coding agent: repository, prompt and agent in; branch, diff and cost out.')

export type AgentTask = z.infer<typeof agentTaskSchema>
export type AgentTaskSpec = z.infer<typeof agentTaskSpecSchema>
export type AgentTaskStatus = z.infer<typeof agentTaskStatusSchema>
export type AgentTaskFile = z.infer<typeof agentTaskFileSchema>
