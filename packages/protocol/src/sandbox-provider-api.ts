import * as z from 'zod'

/** A provider of sandboxes by name, as tasks and settings say it. */
export const sandboxProviderNameSchema = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be a name of lower-case letters, digits and dashes')

const kubernetesName = z.string().min(1).max(253)

/** A cluster that tasks may run in. `agent-sandbox` is an older word for `kubernetes`. */
export const sandboxProviderSchema = z.strictObject({
  name: sandboxProviderNameSchema,
  type: z.enum(['kubernetes', 'agent-sandbox']),
  /** Path of a kubeconfig; the usual ones without it. */
  kubeconfig: z.string().min(1).max(4096).optional(),
  /** Context of the kubeconfig; its current one without it. */
  context: kubernetesName.optional(),
  /** Namespace of the sandboxes; that of the context without it. */
  namespace: kubernetesName.optional(),
  /** RuntimeClass of the sandboxes, such as gvisor. */
  runtime_class_name: kubernetesName.optional(),
  /** Image of the sandboxes. */
  image: z.string().min(1).max(1024).optional(),
  /** A pool to use as it is, instead of one that is made for these settings. */
  pool: kubernetesName.optional(),
  /** Sandboxes kept ready in the pool that is made; none without it. */
  warm: z.number().int().min(0).max(100).optional(),
})
export type SandboxProviderSettings = z.infer<typeof sandboxProviderSchema>

/** A provider as `GET /providers` shows it. */
export const sandboxProviderInfoSchema = z.object({
  name: z.string(),
  type: z.enum(['embedded', 'kubernetes']),
  /** Whether tasks that name none use it. */
  is_default: z.boolean(),
  settings: sandboxProviderSchema.optional(),
})
export type SandboxProviderInfo = z.infer<typeof sandboxProviderInfoSchema>
export const sandboxProviderListSchema = z.object({ providers: z.array(sandboxProviderInfoSchema) })
