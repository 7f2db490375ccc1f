import * as z from 'zod'
import { conditionSchema, dateTime, int32, int64, typeMeta } from './schema-parts.js'

export const AGENT_TASK_PHASES = [
  'QUEUED',
  'PROVISIONING',
  'RUNNING',
  'SUCCEEDED',
  'FAILED',
  'TIMED_OUT',
  'CANCELLED',
] as const

export const agentTaskFileSchema = z.object({
  path: z.string().min(1).describe('Where the file goes, relative to the root of the repository.'),
  content: z.string().describe('What is in it, in the encoding named beside it.'),
  encoding: z.enum(['utf8', 'base64']).exactOptional().describe('How content is written; utf8 where unset.'),
  mode: int32().min(0).max(0o7777).exactOptional().describe('Permission bits; 0644 where unset.'),
})

const MUTABLE_SPEC_FIELDS = ['cancelRequested', 'keepSandbox']

const specFields = {
  repository: z
    .object({ url: z.string().min(1).describe('A path, or a file://, https:// or ssh:// address.') })
    .describe('The repository to work on.'),
  baseBranch: z.string().min(1).exactOptional().describe('Branch to start from; the default branch where unset.'),
  newBranch: z.string().min(1).exactOptional().describe('Branch for the work; corral/<name of the task> where unset.'),
  prompt: z.string().min(1).describe('What the agent shall do.'),
  agent: z
    .object({
      name: z.string().min(1).describe('An agent the platform knows, such as claude or command.'),
      command: z.string().exactOptional().describe('Command line of the command agent.'),
      model: z.string().exactOptional().describe('Model the agent shall use; its own choice where unset.'),
    })
    .describe('Who does the work.'),
  sandbox: z
    .object({
      pool: z.string().exactOptional().describe('SandboxWarmPool to claim from.'),
      template: z.string().exactOptional().describe('SandboxTemplate to start from; not together with a pool.'),
    })
    .exactOptional()
    .describe('Where it is done; the pool "default" where unset.'),
  timeoutSeconds: int32()
    .min(1)
    .exactOptional()
    .meta({ default: 1800, description: 'Time the agent has, counted from its start.' }),
  files: z
    .array(agentTaskFileSchema)
    .exactOptional()
    .describe('Files written into the checkout before the agent runs.'),
  setup: z.string().exactOptional().describe('Command to run before the agent; .corral/setup of the repository else.'),
  egress: z.array(z.string()).exactOptional().describe('Destinations the task may reach, each as host:port.'),
  cancelRequested: z.boolean().exactOptional().describe('Set to true to end the task; work done so far is kept.'),
  keepSandbox: z.boolean().exactOptional().describe('Keep the sandbox of a failed task until the task is deleted.'),
  retryOf: z.string().exactOptional().describe('The task this one repeats.'),
  idempotencyKey: z.string().exactOptional().describe('Digest of the request this task was made from.'),
}

export const agentTaskSpecSchema = z.object(specFields).meta({
  description: 'What is asked for. Only cancelRequested and keepSandbox may change.',
  'x-kubernetes-validations': Object.entries(specFields)
    .filter(([name]) => !MUTABLE_SPEC_FIELDS.includes(name))
    .map(([name, schema]) => ({
      rule: isOptional(schema) ? optionalUnchanged(name) : `self.${name} == oldSelf.${name}`,
      message: `${name} is immutable`,
    })),
})

const reachedAt = (what: string) => dateTime().exactOptional().describe(`When ${what}.`)

export const agentTaskStatusSchema = z
  .object({
    phase: z.enum(AGENT_TASK_PHASES).exactOptional().describe('Where the task stands, derived from the conditions.'),
    conditions: z
      .array(conditionSchema)
      .exactOptional()
      .meta({
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
        description: 'One for every stage that was reached; Succeeded ends the task.',
      }),
    observedGeneration: int64().min(0).exactOptional().describe('The generation of the spec this status is about.'),
    cause: z
      .object({
        code: z.string().describe('A code of the cause table.'),
        message: z.string().describe('What happened in this case.'),
        hint: z.string().exactOptional().describe('What to do next.'),
      })
      .exactOptional()
      .describe('Why the task did not succeed.'),
    outcome: z.enum(['changes', 'no_changes']).exactOptional().describe('Whether the agent changed anything.'),
    sandbox: z
      .object({
        claimName: z.string().describe('The SandboxClaim.'),
        sandboxName: z.string().exactOptional().describe('The Sandbox it was given.'),
        podName: z.string().exactOptional().describe('The pod of that Sandbox.'),
        isolation: z.string().exactOptional().describe('The isolation tier it ran on.'),
      })
      .exactOptional()
      .describe('Where the task runs or ran.'),
    branch: z.string().exactOptional().describe('Branch of the work.'),
    baseBranch: z.string().exactOptional().describe('Branch the work started from.'),
    baseCommit: z.string().exactOptional().describe('Commit the work started from.'),
    commit: z.string().exactOptional().describe('Last commit of the work.'),
    pushed: z.boolean().exactOptional().describe('Whether the branch is in the repository.'),
    diffStat: z
      .object({
        filesChanged: int32().min(0).describe('Files that differ.'),
        insertions: int32().min(0).describe('Lines added.'),
        deletions: int32().min(0).describe('Lines removed.'),
      })
      .exactOptional()
      .describe('Size of the change.'),
    exitCode: int32().exactOptional().describe('Exit code of the agent.'),
    egress: z.array(z.string()).exactOptional().describe('Destinations that were granted.'),
    usage: z
      .object({
        model: z.string().exactOptional().describe('The model that wrote most.'),
        inputTokens: int64().min(0).describe('Tokens sent.'),
        outputTokens: int64().min(0).describe('Tokens received.'),
        cacheReadTokens: int64().min(0).describe('Tokens read from the provider’s cache.'),
        cacheWriteTokens: int64().min(0).describe('Tokens written to the provider’s cache.'),
        costUsd: z.number().min(0).exactOptional().describe('Price in US dollars; absent where one is not known.'),
      })
      .exactOptional()
      .describe('What the model broker counted.'),
    times: z
      .object({
        queuedAt: reachedAt('the task was accepted'),
        provisioningAt: reachedAt('it was admitted'),
        sandboxReadyAt: reachedAt('its sandbox was ready'),
        repositoryReadyAt: reachedAt('the repository was checked out'),
        setupDoneAt: reachedAt('the set-up command had ended'),
        runningAt: reachedAt('the agent was started'),
        agentFinishedAt: reachedAt('the agent had ended'),
        resultCollectedAt: reachedAt('the result was accepted'),
        pushedAt: reachedAt('the branch was pushed'),
        finishedAt: reachedAt('the task had ended'),
      })
      .exactOptional()
      .describe('When each stage was reached.'),
    lastEventSequence: int64().min(0).exactOptional().describe('Sequence of the last event in the log.'),
  })
  .describe('What became of it. Written by the task controller.')

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
export type AgentTaskPhase = (typeof AGENT_TASK_PHASES)[number]

/** Whether a task in this phase will never change its outcome again. */
export function isFinalPhase(phase: AgentTaskPhase | undefined): boolean {
  return phase === 'SUCCEEDED' || phase === 'FAILED' || phase === 'TIMED_OUT' || phase === 'CANCELLED'
}

function isOptional(schema: z.ZodType): boolean {
  return schema._zod.optin === 'optional'
}

function optionalUnchanged(name: string): string {
  return `has(self.${name}) == has(oldSelf.${name}) && (!has(self.${name}) || self.${name} == oldSelf.${name})`
}
