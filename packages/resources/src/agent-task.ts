import * as z from 'zod'
import { conditionSchema, dateTime, int32, int64, typeMeta } from './schema-parts.js'

/** A coding agent's piece of work: repository, prompt and agent in; branch, diff and cost out. */

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
  /** Relative to the repository's root. */
  path: z.string().min(1),
  content: z.string(),
  encoding: z.enum(['utf8', 'base64']).exactOptional(),
  /** Permission bits; 0644 where unset. */
  mode: int32().min(0).max(0o7777).exactOptional(),
})

const MUTABLE_SPEC_FIELDS = ['cancelRequested', 'keepSandbox']

const specFields = {
  repository: z.object({ url: z.string().min(1) }),
  baseBranch: z.string().min(1).exactOptional(),
  newBranch: z.string().min(1).exactOptional(),
  prompt: z.string().min(1),
  agent: z.object({
    name: z.string().min(1),
    command: z.string().exactOptional(),
    model: z.string().exactOptional(),
  }),
  sandbox: z.object({ pool: z.string().exactOptional(), template: z.string().exactOptional() }).exactOptional(),
  timeoutSeconds: int32().min(1).exactOptional().meta({ default: 1800 }),
  files: z.array(agentTaskFileSchema).exactOptional(),
  setup: z.string().exactOptional(),
  /** Destinations the task may reach, each `host:port`. */
  egress: z.array(z.string()).exactOptional(),
  cancelRequested: z.boolean().exactOptional(),
  keepSandbox: z.boolean().exactOptional(),
  retryOf: z.string().exactOptional(),
  idempotencyKey: z.string().exactOptional(),
}

export const agentTaskSpecSchema = z.object(specFields).meta({
  'x-kubernetes-validations': Object.entries(specFields)
    .filter(([name]) => !MUTABLE_SPEC_FIELDS.includes(name))
    .map(([name, schema]) => ({
      rule: isOptional(schema) ? optionalUnchanged(name) : `self.${name} == oldSelf.${name}`,
      message: `${name} is immutable`,
    })),
})

export const agentTaskStatusSchema = z.object({
  phase: z.enum(AGENT_TASK_PHASES).exactOptional(),
  conditions: z
    .array(conditionSchema)
    .exactOptional()
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }),
  observedGeneration: int64().min(0).exactOptional(),
  cause: z.object({ code: z.string(), message: z.string(), hint: z.string().exactOptional() }).exactOptional(),
  outcome: z.enum(['changes', 'no_changes']).exactOptional(),
  sandbox: z
    .object({
      claimName: z.string(),
      sandboxName: z.string().exactOptional(),
      podName: z.string().exactOptional(),
      isolation: z.string().exactOptional(),
    })
    .exactOptional(),
  branch: z.string().exactOptional(),
  baseBranch: z.string().exactOptional(),
  baseCommit: z.string().exactOptional(),
  commit: z.string().exactOptional(),
  pushed: z.boolean().exactOptional(),
  diffStat: z
    .object({ filesChanged: int32().min(0), insertions: int32().min(0), deletions: int32().min(0) })
    .exactOptional(),
  exitCode: int32().exactOptional(),
  egress: z.array(z.string()).exactOptional(),
  usage: z
    .object({
      model: z.string().exactOptional(),
      inputTokens: int64().min(0),
      outputTokens: int64().min(0),
      cacheReadTokens: int64().min(0),
      cacheWriteTokens: int64().min(0),
      costUsd: z.number().min(0).exactOptional(),
    })
    .exactOptional(),
  times: z
    .object({
      queuedAt: dateTime().exactOptional(),
      provisioningAt: dateTime().exactOptional(),
      sandboxReadyAt: dateTime().exactOptional(),
      repositoryReadyAt: dateTime().exactOptional(),
      setupDoneAt: dateTime().exactOptional(),
      runningAt: dateTime().exactOptional(),
      agentFinishedAt: dateTime().exactOptional(),
      resultCollectedAt: dateTime().exactOptional(),
      pushedAt: dateTime().exactOptional(),
      finishedAt: dateTime().exactOptional(),
    })
    .exactOptional(),
  lastEventSequence: int64().min(0).exactOptional(),
})

export const agentTaskSchema = z.object({
  ...typeMeta('corral.dev/v1alpha1', 'AgentTask'),
  spec: agentTaskSpecSchema,
  status: agentTaskStatusSchema.exactOptional(),
})

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
