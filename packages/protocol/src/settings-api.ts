import * as z from 'zod'
import { createTaskRequestSchema, taskBudgetSchema } from './task-api.js'

/** Settings of a platform: where sandboxes run, and what tasks get that say nothing else. */

/** `embedded`: this machine. `kubernetes`: a cluster with the Agent Sandbox kinds. */
export const sandboxProviders = ['embedded', 'kubernetes'] as const
export type SandboxProviderName = (typeof sandboxProviders)[number]

const task = createTaskRequestSchema.shape
const budget = taskBudgetSchema.shape

const unseen = /[\p{C}\p{Zl}\p{Zp}]/u

const fields = {
  /** A context of the kubeconfig; the current one without it. For `kubernetes` alone. */
  context: z
    .string()
    .min(1)
    .max(253)
    // It is printed where the platform starts. A pattern with flags has no words in the API description.
    .refine((name) => !unseen.test(name), 'must not contain letters that cannot be seen')
    .optional(),
  /** The context's without it. For `kubernetes` alone. */
  namespace: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, 'must be the name of a namespace')
    .optional(),
  /** RuntimeClass of tasks that name none; the default of the nodes without it. */
  runtime_class: task.runtime_class_name,
  /** Time of tasks that name none. */
  timeout_seconds: task.timeout_seconds,
  /** Budget of tasks that name none. */
  max_cost_usd: budget.max_cost_usd,
  max_tokens: budget.max_tokens,
}

export const settingsSchema = z.strictObject({ provider: z.enum(sandboxProviders), ...fields })
export type Settings = z.infer<typeof settingsSchema>

/** `GET /settings`. */
export const settingsViewSchema = settingsSchema.extend({
  /** Changes with every change: `If-Match` of the next one. */
  revision: z.string(),
  /** Where the sandboxes of this process run, which is decided when it starts. */
  active: z.object({ provider: z.enum(sandboxProviders), context: z.string().optional(), namespace: z.string() }),
  /** Whether `provider`, `context` and `namespace` can be chosen here: a server in a cluster is given them. */
  can_choose_provider: z.boolean(),
})
export type SettingsView = z.infer<typeof settingsViewSchema>

type Nullable<T extends Record<string, z.ZodType>> = { [K in keyof T]: z.ZodNullable<T[K]> }

/** `PATCH /settings`: what changes; `null` takes a setting away. */
export const patchSettingsRequestSchema = z.strictObject({
  provider: z.enum(sandboxProviders).optional(),
  ...(Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, schema.nullable()])) as Nullable<
    typeof fields
  >), // the same names, each value wrapped
  /** Only where the settings still have this revision; also as `If-Match`. */
  revision: z.string().min(1).max(100).optional(),
})
export type PatchSettingsRequest = z.infer<typeof patchSettingsRequestSchema>

/** `POST /settings/test`: settings that need not be saved; those that are saved without it. */
export const testSettingsRequestSchema = z.strictObject({ settings: patchSettingsRequestSchema.optional() })
export type TestSettingsRequest = z.infer<typeof testSettingsRequestSchema>

/** `GET /kubernetes/contexts`: names of the platform's kubeconfig, never its credentials. */
export const kubeContextListSchema = z.object({
  contexts: z.array(
    z.object({
      name: z.string(),
      cluster: z.string().optional(),
      namespace: z.string().optional(),
      is_current: z.boolean(),
    }),
  ),
  /** Why there are none. */
  problem: z.string().optional(),
})
export type KubeContextList = z.infer<typeof kubeContextListSchema>

/** `GET /kubernetes/namespaces` and `/kubernetes/runtime-classes`. */
export const kubeNameListSchema = z.object({
  names: z.array(z.string()),
  /** Why they cannot be listed: a name may still be right. */
  problem: z.string().optional(),
})
export type KubeNameList = z.infer<typeof kubeNameListSchema>

/** The settings after a change. */
export function changedSettings(settings: Settings, patch: PatchSettingsRequest): Settings {
  const { revision: _, ...changes } = patch
  const all = Object.entries({ ...settings, ...changes }).filter(([, value]) => value !== null && value !== undefined)
  return settingsSchema.parse(Object.fromEntries(all))
}
