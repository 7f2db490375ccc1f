import * as z from 'zod'
import { branchNameRules, identityTextRules, repositoryUrlRules } from './agent-task-rules.js'
import { int32 } from './schema-parts.js'

/** Pieces that an AgentTask and a Project have in common: what a project gives a task has the same shape in both. */

export const branchName = () => z.string().min(1).max(200).meta({ 'x-kubernetes-validations': branchNameRules })

export const repositorySchema = z.object({
  url: z.string().min(1).max(4096).meta({
    description: 'A path, or a file://, https:// or ssh:// address, without credentials.',
    'x-kubernetes-validations': repositoryUrlRules,
  }),
  submodules: z
    .enum(['none', 'direct', 'recursive'])
    .exactOptional()
    .describe('Which submodules are brought in with the credentials of the platform; none where unset.'),
  lfs: z
    .boolean()
    .exactOptional()
    .describe('Whether files stored with Git LFS come in and go out as contents; they are pointers where unset.'),
})

export const agentSchema = z.object({
  name: z.string().min(1).describe('An agent the platform knows, as `corral agent list` shows them.'),
  command: z.string().exactOptional().describe('Command line of agents that are one.'),
  model: z.string().exactOptional().describe('Model the agent shall use; its own choice where unset.'),
  effort: z.string().exactOptional().describe('How hard the model shall think, in the words of the agent.'),
  args: z.array(z.string()).exactOptional().describe('More arguments for the program of the agent.'),
  provider: z
    .string()
    .exactOptional()
    .describe('Provider or named endpoint of the model; the agent’s own where unset.'),
  options: z
    .record(z.string(), z.string())
    .exactOptional()
    .describe('Options only this agent has, each value as JSON.'),
})

export const checkSchema = z.object({
  // The file with its output has its name; and a name that the task API does not know would make its whole list unreadable.
  name: z
    .string()
    .max(63)
    .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/)
    .describe('What it is called; unique in the task.'),
  command: z.string().min(1).describe('Run with /bin/sh at the top of the checkout; exit code 0 is good.'),
  timeoutSeconds: int32().min(1).exactOptional().describe('Time it has; 600 where unset.'),
})

const identityText = () => z.string().min(1).max(200).meta({ 'x-kubernetes-validations': identityTextRules })

/** Who a commit names. */
export const gitIdentitySchema = z.object({
  name: identityText().describe('As git writes it before the address.'),
  email: identityText().describe('The address, without angle brackets.'),
})
export type GitIdentity = z.infer<typeof gitIdentitySchema>
