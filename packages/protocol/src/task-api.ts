import * as z from 'zod'
import {
  diffStatSchema,
  type TaskPhase,
  taskCauseSchema,
  taskOutcomes,
  taskPhaseSchema,
  usageSchema,
} from './task-events.js'

/** Sizes a request to the task API may have. */
export const taskLimits = {
  promptCharacters: 256 * 1024,
  commandCharacters: 64 * 1024,
  files: 200,
  fileCharacters: 1024 * 1024,
  egressRules: 100,
  maxTimeoutSeconds: 24 * 60 * 60,
  defaultTimeoutSeconds: 30 * 60,
} as const

const branchName = z.string().min(1).max(200).refine(isBranchName, 'is not a valid branch name')

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

export const agentChoiceSchema = z.discriminatedUnion('name', [
  z.strictObject({ name: z.literal('command'), command: z.string().min(1).max(taskLimits.commandCharacters) }),
  z.strictObject({ name: z.literal('claude'), model: z.string().min(1).max(200).optional() }),
])
export type AgentChoice = z.infer<typeof agentChoiceSchema>

/** `host:port`; the host may begin with `*.`. */
export const egressRuleSchema = z
  .string()
  .max(260)
  .regex(/^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?:[1-9][0-9]{0,4}$/i, 'must be host:port, e.g. packages.example.com:443')

/** `POST /tasks`. Unknown fields are refused, so a typing error is not silently ignored. */
export const createTaskRequestSchema = z.strictObject({
  repo: z.string().min(1).max(4096),
  task: z.string().min(1).max(taskLimits.promptCharacters),
  base_branch: branchName.optional(),
  new_branch: branchName.optional(),
  agent: agentChoiceSchema.optional(),
  timeout_seconds: z.number().int().min(1).max(taskLimits.maxTimeoutSeconds).optional(),
  files: z.array(injectedFileSchema).max(taskLimits.files).optional(),
  setup: z.string().min(1).max(taskLimits.commandCharacters).optional(),
  egress: z.array(egressRuleSchema).max(taskLimits.egressRules).optional(),
  sandbox: z
    .strictObject({ pool: z.string().min(1).max(253).optional(), template: z.string().min(1).max(253).optional() })
    .optional(),
  labels: z.record(z.string().max(317), z.string().max(63)).optional(),
  /** Hold the sandbox of a failed task for a look inside. */
  keep_sandbox: z.boolean().optional(),
})
export type CreateTaskRequest = z.infer<typeof createTaskRequestSchema>

/** The answer to `POST /tasks`. */
export const createTaskResponseSchema = z.object({ id: z.string(), status: taskPhaseSchema })
export type CreateTaskResponse = z.infer<typeof createTaskResponseSchema>

const time = z.iso.datetime({ offset: true })

export const taskTimesSchema = z.object({
  queued_at: time.optional(),
  provisioning_at: time.optional(),
  sandbox_ready_at: time.optional(),
  repository_ready_at: time.optional(),
  setup_done_at: time.optional(),
  running_at: time.optional(),
  agent_finished_at: time.optional(),
  result_collected_at: time.optional(),
  pushed_at: time.optional(),
  finished_at: time.optional(),
})
export type TaskTimes = z.infer<typeof taskTimesSchema>

/** A task as the API shows it. The prompt is `task`, as in the request. */
export const taskViewSchema = z.object({
  id: z.string(),
  status: taskPhaseSchema,
  repo: z.string(),
  task: z.string(),
  base_branch: z.string().optional(),
  base_commit: z.string().optional(),
  branch: z.string().optional(),
  commit: z.string().optional(),
  pushed: z.boolean().optional(),
  outcome: z.enum(taskOutcomes).optional(),
  cause: taskCauseSchema.optional(),
  diff_stat: diffStatSchema.optional(),
  exit_code: z.number().int().optional(),
  agent: z.object({ name: z.string(), command: z.string().optional(), model: z.string().optional() }),
  sandbox: z
    .object({
      claim: z.string().optional(),
      name: z.string().optional(),
      pod: z.string().optional(),
      isolation: z.string().optional(),
    })
    .optional(),
  usage: usageSchema.optional(),
  egress: z.array(z.string()).optional(),
  labels: z.record(z.string(), z.string()).optional(),
  timeout_seconds: z.number().int(),
  times: taskTimesSchema.optional(),
  created_at: time,
  retry_of: z.string().optional(),
  last_event_sequence: z.number().int().nonnegative().optional(),
})
export type TaskView = z.infer<typeof taskViewSchema>

export const taskListSchema = z.object({ tasks: z.array(taskViewSchema), next: z.string().optional() })
export type TaskList = z.infer<typeof taskListSchema>

/** Body of every error answer, of the task API and of the daemon. */
export const errorBodySchema = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string().optional() }),
})
export type ErrorBody = z.infer<typeof errorBodySchema>

const ended: readonly TaskPhase[] = ['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELLED']

/** Whether a task in this phase never changes again. */
export const isFinalPhase = (phase: TaskPhase): boolean => ended.includes(phase)

/** Git's own rules for a branch name, as far as they can be told from the text alone. */
export function isBranchName(name: string): boolean {
  if (name.startsWith('-') || name.startsWith('/') || name.endsWith('/') || name.endsWith('.') || name === '@')
    return false
  if (name.includes('..') || name.includes('@{') || name.includes('//')) return false
  // biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses control characters in a ref
  if (/[\x00-\x20\x7f~^:?*[\\]/.test(name)) return false
  return name.split('/').every((part) => !part.startsWith('.') && !part.endsWith('.lock'))
}

/** Whether a file of a request may be written at this path of the repository. */
export function isInjectablePath(path: string): boolean {
  if (path.startsWith('/') || path.includes('\0') || path.includes('\\') || path.endsWith('/')) return false
  const parts = path.split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..')) return false
  return parts[0]?.toLowerCase() !== '.git'
}
