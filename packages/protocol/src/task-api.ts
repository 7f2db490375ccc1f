import {
  askPolicies,
  defaultTaskTimeoutSeconds,
  highestPriority,
  isolationTiers,
  lowestPriority,
  packagesGrant,
  retryStages,
  taskModes,
} from '@corral/resources/task-words'
import * as z from 'zod'
import { branchNameProblem } from './branch-name.js'
import { checkLimits, checksSchema, failedChecksPolicySchema } from './check-api.js'
import { gitIdentitySchema } from './git-identity.js'
import { artifactLimits } from './result-api.js'
import { sandboxProviderNameSchema } from './sandbox-provider-api.js'
import { taskPhaseSchema } from './task-state.js'

/** Sizes a request to the task API may have. */
export const taskLimits = {
  promptCharacters: 256 * 1024,
  commandCharacters: 64 * 1024,
  instructionsCharacters: 64 * 1024,
  mcpServers: 20,
  files: 200,
  fileCharacters: 1024 * 1024,
  egressRules: 100,
  attempts: 10,
  maxTimeoutSeconds: 24 * 60 * 60,
  defaultTimeoutSeconds: defaultTaskTimeoutSeconds,
} as const

export const branchNameSchema = z
  .string()
  .min(1)
  .max(200)
  .superRefine((name, context) => {
    const problem = branchNameProblem(name)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })

const kubeName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/

/** With another name no object could be made, and the task would wait for it without end. */
const objectName = (what: string): z.ZodString =>
  z.string().min(1).max(253).regex(kubeName, `must be the name of ${what}`)

/** Text that becomes an argument, a file name or an environment variable, none of which can hold a NUL. */
export const plainText = (max: number): z.ZodString =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((text) => !text.includes('\0'), 'must not contain a NUL character')

const agentName = z.string().min(1).max(63)

/** A path below the repository's root, without `..`, NUL or a leading slash; never inside `.git`. */
export const injectedPathSchema = z
  .string()
  .min(1)
  .max(1024)
  .refine(isInjectablePath, 'must be a relative path that stays inside the repository and outside .git')

export const injectedFileSchema = z.strictObject({
  path: injectedPathSchema,
  content: z.string().max(taskLimits.fileCharacters),
  encoding: z.enum(['utf8', 'base64']).optional(),
  /** Permission bits as an octal string, e.g. `"0755"`. */
  mode: z
    .string()
    .regex(/^0?[0-7]{3}$/, 'must be an octal mode such as "0644"')
    .optional(),
})
export type InjectedFile = z.infer<typeof injectedFileSchema>

/** `"claude"`, or an object with the agent's name and its options, which the agent itself checks. */
export const agentChoiceSchema = z.union([agentName, z.looseObject({ name: agentName })])
export type AgentChoice = z.infer<typeof agentChoiceSchema>

/** The long form of a choice. */
export function agentChoiceOf(choice: AgentChoice): { name: string; [option: string]: unknown } {
  return typeof choice === 'string' ? { name: choice } : choice
}

const variables = z.record(z.string().regex(/^[^=\0]{1,200}$/, 'must be a name'), z.string().max(8 * 1024))
const mcpName = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,40}$/, 'must be letters, digits, dashes and underscores')

/** A server of the Model Context Protocol for the agent: a program inside the sandbox, or an address `egress` names. */
export const mcpServerSchema = z.union([
  z.strictObject({
    name: mcpName,
    command: plainText(4096),
    args: z.array(plainText(4096)).max(100).optional(),
    env: variables.optional(),
  }),
  z.strictObject({
    name: mcpName,
    url: z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' }).max(2048),
    headers: variables.optional(),
  }),
])

/** What a task may spend on models. */
export const taskBudgetSchema = z.strictObject({
  max_tokens: z.number().int().min(1).optional(),
  max_cost_usd: z.number().positive().max(1_000_000).optional(),
})

const hostPattern = '(\\*\\.)?[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?'
const portPattern = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'

/** `host:port`, where the host may begin with `*.`, or `packages` for the package mirror. No flags: the pattern is part of the OpenAPI document, which has none. */
export const egressRuleSchema = z
  .string()
  .max(260)
  .regex(
    new RegExp(`^(${packagesGrant}|${hostPattern}:${portPattern})$`),
    `must be host:port, e.g. files.example.com:443, or ${packagesGrant}`,
  )

/** Names that every JavaScript object answers to: a label of that name would be read where there is none. */
export const reservedLabels: readonly string[] = ['__proto__', 'constructor', 'prototype']

const labelKey = z
  .string()
  .max(317)
  .refine((key) => !reservedLabels.includes(key), 'is reserved and cannot be a label')

/** The name of a Project, which is also the value of a label. */
export const projectNameSchema = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be lower-case letters, digits, dashes and dots')

const taskRequestFields = z.strictObject({
  /** May be left out where the project names it. */
  repo: plainText(4096).optional(),
  /** A project, whose settings count where the request does not say otherwise; its instructions come before these. */
  project: projectNameSchema.optional(),
  task: plainText(taskLimits.promptCharacters),
  base_branch: branchNameSchema.optional(),
  new_branch: branchNameSchema.optional(),
  /**
   * Brings submodules in, fetched with the credentials of the platform's user: their addresses come from the repository, so
   * leave it off for one you do not trust. `"recursive"`: also those inside submodules.
   */
  submodules: z.union([z.boolean(), z.literal('recursive')]).optional(),
  /**
   * Brings the contents of Git LFS files in, fetched with the credentials of the platform's user, and stores those the agent
   * adds with Git LFS. The repository may name the server, so leave it off for one you do not trust.
   */
  lfs: z.boolean().optional(),
  agent: agentChoiceSchema.optional(),
  /** Several tasks at once, each on a branch of its own; `agent` is for those that name none. */
  attempts: z
    .array(z.strictObject({ agent: agentChoiceSchema.optional() }))
    .min(2)
    .max(taskLimits.attempts)
    .optional(),
  /** Said to the agent beside what the repository's own instruction files say. */
  instructions: plainText(taskLimits.instructionsCharacters).optional(),
  mcp_servers: z.array(mcpServerSchema).max(taskLimits.mcpServers).optional(),
  /** Checked before each call of a model; over it the agent is ended and its work kept. */
  limits: taskBudgetSchema.optional(),
  timeout_seconds: z.number().int().min(1).max(taskLimits.maxTimeoutSeconds).optional(),
  /** Among the tasks that wait for a place the highest goes first; 0 without it. It ends no task that runs. */
  priority: z.number().int().min(lowestPriority).max(highestPriority).optional(),
  files: z.array(injectedFileSchema).max(taskLimits.files).optional(),
  setup: plainText(taskLimits.commandCharacters).optional(),
  /** The part of the repository's environment to set up, one of `parts` of its file. */
  part: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,30}$/, 'must be lower-case letters, digits and dashes')
    .optional(),
  /** Time the set-up command has; 20 minutes without it. */
  setup_timeout_seconds: z.number().int().min(1).max(taskLimits.maxTimeoutSeconds).optional(),
  /** How often the state of the work is taken out while the agent runs; 120 without it, 0 for never. */
  checkpoint_seconds: z.number().int().min(0).max(taskLimits.maxTimeoutSeconds).optional(),
  /** Run after the agent, in its sandbox; what fails goes back to it. */
  checks: checksSchema.optional(),
  /** How often the agent is sent back; 2 without it. */
  check_rounds: z.number().int().min(0).max(checkLimits.maxRounds).optional(),
  /** Whether a branch whose checks still fail is pushed; `push` without it. The task fails either way. */
  on_failed_checks: failedChecksPolicySchema.optional(),
  /** Files and directories of the checkout that are kept with the task, whether or not they are part of its result. */
  artifacts: z.array(injectedPathSchema).max(artifactLimits.paths).optional(),
  egress: z.array(egressRuleSchema).max(taskLimits.egressRules).optional(),
  /** Beside `egress`, for set-up alone: closed again before the agent starts. */
  setup_egress: z.array(egressRuleSchema).max(taskLimits.egressRules).optional(),
  sandbox: z
    .strictObject({
      pool: objectName('a pool').optional(),
      template: objectName('a template').optional(),
      /** The provider of the sandbox, where it is not the platform's default one. */
      provider: sandboxProviderNameSchema.optional(),
    })
    .optional(),
  labels: z.record(labelKey, z.string().max(63)).optional(),
  /** `plan`: the agent plans, changes nothing, and waits for the approval of its plan. */
  mode: z.enum(taskModes).optional(),
  /**
   * How long the sandbox is kept while the task waits for a decision (300 without it), and after the task for a follow-up
   * (0 without it).
   */
  hold_sandbox_seconds: z.number().int().min(0).max(taskLimits.maxTimeoutSeconds).optional(),
  /** How long a plan waits for a decision; a day without it. */
  plan_expiry_seconds: z
    .number()
    .int()
    .min(1)
    .max(30 * 24 * 60 * 60)
    .optional(),
  /**
   * What the agent asks a person. `never`, which is the default: everything inside the sandbox is allowed. `input`: it may
   * ask what it wants to know. `always`: it also asks for every permission. The task is `WAITING_INPUT` meanwhile.
   */
  ask: z.enum(askPolicies).optional(),
  /** How long a question waits for an answer; a day without it. */
  question_expiry_seconds: z
    .number()
    .int()
    .min(1)
    .max(30 * 24 * 60 * 60)
    .optional(),
  /** Hold the sandbox of a failed task for a look inside. */
  keep_sandbox: z.boolean().optional(),
  /** Author of the commits; the project's, else the git identity of the platform's user, or of Corral on a server. */
  author: gitIdentitySchema.optional(),
  /** Committer of the commits; the same without it. */
  committer: gitIdentitySchema.optional(),
  /** Makes every commit of the result anew outside the sandbox, signed as the git configuration of the platform's user says. */
  sign: z.boolean().optional(),
  /** Path of the environment file in the repository, instead of `.corral/environment.yaml`. */
  environment_file: injectedPathSchema.optional(),
  /** False: set up from nothing, whatever the environment of the repository has built. */
  use_snapshot: z.boolean().optional(),
  /** RuntimeClass of the pod; a pool whose template has it is used where `sandbox` names none. */
  runtime_class_name: z.string().max(253).regex(kubeName, 'must be the name of a RuntimeClass').optional(),
  /** The weakest isolation tier the task may run on. */
  minimum_tier: z.enum(isolationTiers).optional(),
})

/** `POST /tasks`. Unknown fields are refused, so a typing error is not silently ignored. */
export const createTaskRequestSchema: typeof taskRequestFields = taskRequestFields.superRefine(
  ({ repo, project }, context) => {
    if (repo === undefined && project === undefined)
      context.addIssue({ code: 'custom', path: ['repo'], message: 'is required where no project names it' })
  },
)
export type CreateTaskRequest = z.infer<typeof createTaskRequestSchema>

/** A request that says by itself what to work on. */
export type CompleteTaskRequest = CreateTaskRequest & { repo: string }

/** `POST /tasks/{id}/retry`; every field, and the body itself, may be left out. */
export const retryTaskRequestSchema = z.strictObject({
  /** Where to begin: with the push of kept work, with the agent on the same base, or anew. The stage that failed without it. */
  from: z.enum(retryStages).optional(),
  /** Another branch for the work, for one that was taken. */
  new_branch: branchNameSchema.optional(),
  /** Whether the agent goes on from what was saved of the former one's work. True without it where that was cut short. */
  keep_work: z.boolean().optional(),
})
export type RetryTaskRequest = z.infer<typeof retryTaskRequestSchema>

/** The answer to `POST /tasks`. */
export const createTaskResponseSchema = z.object({
  id: z.string(),
  status: taskPhaseSchema,
  /** For `attempts`: what they share, and the ids of all of them; `id` is the first. */
  group: z.string().optional(),
  tasks: z.array(z.string()).optional(),
})
export type CreateTaskResponse = z.infer<typeof createTaskResponseSchema>

/** Body of every error answer, of the task API and of the daemon. */
export const errorBodySchema = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string().optional() }),
})
export type ErrorBody = z.infer<typeof errorBodySchema>

/** Whether a file of a request may be written at this path of the repository. */
export function isInjectablePath(path: string): boolean {
  if (path.startsWith('/') || path.includes('\0') || path.includes('\\') || path.endsWith('/')) return false
  const parts = path.split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..')) return false
  return parts[0]?.toLowerCase() !== '.git'
}
