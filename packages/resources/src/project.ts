import * as z from 'zod'
import { int32, typeMeta } from './schema-parts.js'
import { agentSchema, branchName, checkSchema, gitIdentitySchema, repositorySchema } from './task-parts.js'
import { isolationTiers } from './task-words.js'

const egress = () => z.array(z.string()).exactOptional()

export const projectSpecSchema = z
  .object({
    description: z.string().max(1000).exactOptional().describe('What it is, in a sentence.'),
    repository: repositorySchema.exactOptional().describe('The repository its tasks work on.'),
    baseBranch: branchName()
      .exactOptional()
      .describe('Branch its tasks start from; the default branch of the repository where unset.'),
    agent: agentSchema.exactOptional().describe('Who does the work; the default agent of the platform where unset.'),
    instructions: z.string().exactOptional().describe('Said to the agent before the instructions of the task.'),
    author: gitIdentitySchema.exactOptional().describe('Author of commits.'),
    committer: gitIdentitySchema.exactOptional().describe('Committer of commits.'),
    sign: z
      .boolean()
      .exactOptional()
      .describe('Whether commits are signed with the key of the platform’s user, outside the sandbox.'),
    environment: z
      .object({
        file: z
          .string()
          .max(1024)
          .exactOptional()
          .describe('Path of the environment file in the repository; .corral/environment.yaml where unset.'),
        setup: z.string().exactOptional().describe('Command to run before the agent.'),
        setupTimeoutSeconds: int32().min(1).exactOptional().describe('Time the set-up command has.'),
      })
      .exactOptional()
      .describe('How the sandbox of a task is prepared.'),
    checks: z.array(checkSchema).exactOptional().describe('Commands that judge the work.'),
    checkRounds: int32()
      .min(0)
      .max(10)
      .exactOptional()
      .describe('How often the agent is sent back with the output of checks that failed.'),
    onFailedChecks: z
      .enum(['push', 'no-push'])
      .exactOptional()
      .describe('What becomes of a branch whose checks still fail.'),
    egress: egress().describe('What tasks may reach: host:port each, or the word packages for the package mirror.'),
    setupEgress: egress().describe('What set-up may reach beside egress; it is closed before the agent starts.'),
    runtimeClassName: z.string().max(253).exactOptional().describe('RuntimeClass the pods of its tasks must have.'),
    minimumTier: z.enum(isolationTiers).exactOptional().describe('The weakest isolation tier its tasks may run on.'),
  })
  .describe('What its tasks get where they do not say otherwise. A change is for tasks created after it.')

export const projectSchema = z.object({ ...typeMeta('corral.dev/v1alpha1', 'Project'), spec: projectSpecSchema }).meta({
  description: 'What tasks on one repository have in common: repository, agent, instructions, checks, network.',
  'x-kubernetes-validations': [
    { rule: 'size(self.metadata.name) <= 63', message: 'the name of a project has 63 characters at most' },
  ],
})

export type Project = z.infer<typeof projectSchema>
export type ProjectSpec = z.infer<typeof projectSpecSchema>
