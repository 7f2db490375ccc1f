import { isolationTiers } from '@corral/resources/task-words'
import * as z from 'zod'
import { failedChecksPolicySchema } from './check-api.js'
import { createTaskRequestSchema, plainText, projectNameSchema } from './task-api.js'

const task = createTaskRequestSchema.shape

/** What a project gives its tasks, each under the name it has in `POST /tasks`. */
const settings = {
  description: plainText(1000).optional(),
  repo: task.repo,
  submodules: task.submodules,
  lfs: task.lfs,
  base_branch: task.base_branch,
  agent: task.agent,
  /** Said to the agent before what the task itself says. */
  instructions: task.instructions,
  author: task.author,
  committer: task.committer,
  sign: task.sign,
  environment_file: task.environment_file,
  setup: task.setup,
  setup_timeout_seconds: task.setup_timeout_seconds,
  checks: task.checks,
  check_rounds: task.check_rounds,
  on_failed_checks: task.on_failed_checks,
  egress: task.egress,
  setup_egress: task.setup_egress,
  runtime_class_name: task.runtime_class_name,
  minimum_tier: task.minimum_tier,
}

/** Names of the fields a project may have, in the order people read them. */
export const projectFields: readonly ProjectField[] = Object.keys(settings) as ProjectField[]
export type ProjectField = keyof typeof settings

export const projectSettingsSchema = z.strictObject(settings)
export type ProjectSettings = z.infer<typeof projectSettingsSchema>

/** `POST /projects`. */
export const createProjectRequestSchema = z.strictObject({ name: projectNameSchema, ...settings })
export type CreateProjectRequest = z.infer<typeof createProjectRequestSchema>

/** The version of a project that a change is about: 409 where it has changed since. May be left out, or be `If-Match`. */
const resourceVersion = z.string().min(1).max(100).optional()

/** `PUT /projects/{name}`: all settings; what is left out is gone. */
export const replaceProjectRequestSchema = z.strictObject({ ...settings, resource_version: resourceVersion })
export type ReplaceProjectRequest = z.infer<typeof replaceProjectRequestSchema>

type Nullable<T extends Record<string, z.ZodType>> = { [K in keyof T]: z.ZodNullable<T[K]> }

/** `PATCH /projects/{name}`: settings that change; `null` takes one away. */
export const patchProjectRequestSchema = z.strictObject({
  ...(Object.fromEntries(Object.entries(settings).map(([name, schema]) => [name, schema.nullable()])) as Nullable<
    typeof settings
  >), // the same names, each value wrapped
  resource_version: resourceVersion,
})
export type PatchProjectRequest = z.infer<typeof patchProjectRequestSchema>

const identity = z.object({ name: z.string(), email: z.string() })

/** A project as the API shows it. One that was made with kubectl may hold what the API would have refused. */
export const projectViewSchema = z.object({
  name: z.string(),
  description: z.string().optional(),
  repo: z.string().optional(),
  submodules: task.submodules,
  lfs: z.boolean().optional(),
  base_branch: z.string().optional(),
  agent: z.looseObject({ name: z.string(), command: z.string().optional(), model: z.string().optional() }).optional(),
  instructions: z.string().optional(),
  author: identity.optional(),
  committer: identity.optional(),
  sign: z.boolean().optional(),
  environment_file: z.string().optional(),
  setup: z.string().optional(),
  setup_timeout_seconds: z.number().int().optional(),
  checks: z
    .array(z.object({ name: z.string(), command: z.string(), timeout_seconds: z.number().int().optional() }))
    .optional(),
  check_rounds: z.number().int().optional(),
  on_failed_checks: failedChecksPolicySchema.optional(),
  egress: z.array(z.string()).optional(),
  setup_egress: z.array(z.string()).optional(),
  runtime_class_name: z.string().optional(),
  minimum_tier: z.enum(isolationTiers).optional(),
  /** Changes with every change of the project; also the `ETag` of the answer. */
  resource_version: z.string(),
  created_at: z.iso.datetime({ offset: true }),
})
export type ProjectView = z.infer<typeof projectViewSchema>

export const projectListSchema = z.object({ projects: z.array(projectViewSchema) })
