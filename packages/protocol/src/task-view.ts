import { askPolicies, isolationTiers, planVerdicts, retryStages, taskModes } from '@corral/resources/task-words'
import * as z from 'zod'
import { taskGroupSchema } from './attempt-api.js'
import { taskChecksSchema } from './check-api.js'
import {
  diffStatSchema,
  refusedHostSchema,
  taskCauseSchema,
  taskOutcomeSchema,
  taskPhaseSchema,
  taskWarningSchema,
  usageSchema,
} from './task-state.js'

const time = z.iso.datetime({ offset: true })

export const taskTimesSchema = z.object({
  queued_at: time.optional(),
  provisioning_at: time.optional(),
  sandbox_ready_at: time.optional(),
  repository_ready_at: time.optional(),
  setup_done_at: time.optional(),
  plan_approved_at: time.optional(),
  running_at: time.optional(),
  agent_finished_at: time.optional(),
  checks_done_at: time.optional(),
  result_collected_at: time.optional(),
  pushed_at: time.optional(),
  finished_at: time.optional(),
})
export type TaskTimes = z.infer<typeof taskTimesSchema>

export const taskQuestionSchema = z.object({
  id: z.string(),
  kind: z.enum(['permission', 'input']),
  text: z.string(),
  /** What can be answered; any text where there are none. */
  options: z.array(z.object({ id: z.string(), label: z.string() })),
  asked_at: time,
  expires_at: time,
  outcome: z.enum(['answered', 'withdrawn', 'expired']).optional(),
  answer: z.string().optional(),
  settled_at: time.optional(),
})
export type TaskQuestion = z.infer<typeof taskQuestionSchema>

/** A task as the API shows it. The prompt is `task`, as in the request. */
export const taskViewSchema = z.object({
  id: z.string(),
  status: taskPhaseSchema,
  repo: z.string(),
  task: z.string(),
  /** The project it belongs to. */
  project: z.string().optional(),
  base_branch: z.string().optional(),
  base_commit: z.string().optional(),
  /** The branch with the work, once it is in the repository. */
  branch: z.string().optional(),
  /** The name that was asked for. */
  new_branch: z.string().optional(),
  commit: z.string().optional(),
  pushed: z.boolean().optional(),
  outcome: taskOutcomeSchema.optional(),
  cause: taskCauseSchema.optional(),
  diff_stat: diffStatSchema.optional(),
  /** What did not fail the task but its owner should know. */
  warnings: z.array(taskWarningSchema).optional(),
  /** Files kept with the task: `GET /tasks/{id}/artifacts/{name}`. */
  artifacts: z.array(z.string()).optional(),
  exit_code: z.number().int().optional(),
  /** As in the request: the name and the options of the agent. */
  agent: z.looseObject({ name: z.string(), command: z.string().optional(), model: z.string().optional() }),
  instructions: z.string().optional(),
  /** Values of variables and headers are left out: they may be secrets. */
  mcp_servers: z.array(z.looseObject({ name: z.string() })).optional(),
  limits: z.object({ max_tokens: z.number().optional(), max_cost_usd: z.number().optional() }).optional(),
  /** While the task waits: how many are before it, counted from 1, and what they all wait for. */
  queue: z.object({ position: z.number().int().positive(), reason: z.string(), since: time }).optional(),
  /** What holds up the sandbox of a task, in Kubernetes' own words, e.g. `ImagePullBackOff`. */
  waiting: z.object({ reason: z.string(), message: z.string(), since: time }).optional(),
  checks: taskChecksSchema.optional(),
  sandbox: z
    .object({
      claim: z.string().optional(),
      name: z.string().optional(),
      pod: z.string().optional(),
      isolation: z.string().optional(),
      /** The provider it is from, where that is another cluster. */
      provider: z.string().optional(),
      /** While it is held for a follow-up: until when. */
      held_until: time.optional(),
      /** The task that held it for this one. */
      taken_from: z.string().optional(),
    })
    .optional(),
  usage: usageSchema.optional(),
  egress: z.array(z.string()).optional(),
  /** What the task tried to reach and was not allowed to or could not, with the number of times. */
  refused: z.array(refusedHostSchema).optional(),
  /** The file of the repository its environment comes from, such as `.corral/environment.yaml`. */
  environment_file: z.string().max(1_000).optional(),
  labels: z.record(z.string(), z.string()).optional(),
  author: z.object({ name: z.string(), email: z.string() }).optional(),
  committer: z.object({ name: z.string(), email: z.string() }).optional(),
  sign: z.boolean().optional(),
  runtime_class_name: z.string().optional(),
  minimum_tier: z.enum(isolationTiers).optional(),
  timeout_seconds: z.number().int(),
  times: taskTimesSchema.optional(),
  created_at: time,
  retry_of: z.string().optional(),
  /** Where the retry began. */
  retry_from: z.enum(retryStages).optional(),
  mode: z.enum(taskModes).optional(),
  /** The agent's plan, once it has one; without a verdict it waits for `POST /tasks/{id}/approve`, `/revise` or `/reject`. */
  plan: z
    .object({
      revision: z.number().int().positive(),
      text: z.string(),
      proposed_at: time,
      expires_at: time,
      verdict: z.enum(planVerdicts).optional(),
      remark: z.string().optional(),
      decided_at: time.optional(),
    })
    .optional(),
  /** What was said while the task ran; what the agent did not read becomes a follow-up when the task has ended. */
  messages: z
    .array(
      z.object({
        id: z.string(),
        task: z.string(),
        at: time,
        delivery: z.enum(['steered', 'queued']).optional(),
        /** Whether the agent took it up while it ran. */
        read: z.boolean().optional(),
      }),
    )
    .optional(),
  ask: z.enum(askPolicies).optional(),
  /** What the agent asked; without an outcome a question waits for `POST /tasks/{id}/answers`. */
  questions: z.array(taskQuestionSchema).optional(),
  hold_sandbox_seconds: z.number().int().optional(),
  priority: z.number().int().optional(),
  /** The task this one goes on from. */
  continues: z.string().optional(),
  /** The first task of the conversation this one belongs to. */
  thread: z.string().optional(),
  /** The attempts this task is one of: `GET /groups/{name}`. */
  group: taskGroupSchema.optional(),
  /** Whether the agent's session is kept, so that a follow-up goes on with it. */
  session: z.object({ id: z.string(), size_bytes: z.number().int().nonnegative() }).optional(),
  last_event_sequence: z.number().int().nonnegative().optional(),
})
export type TaskView = z.infer<typeof taskViewSchema>

export const taskListSchema = z.object({ tasks: z.array(taskViewSchema), next: z.string().optional() })
export type TaskList = z.infer<typeof taskListSchema>
