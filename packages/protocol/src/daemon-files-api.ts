import * as z from 'zod'
import { absolutePathSchema, fileInfoSchema } from './daemon-api.js'

/** `POST /v1/file-operations`: what changes names and directories, one operation per request. */
export const fileOperationSchema = z.discriminatedUnion('operation', [
  z.strictObject({
    operation: z.literal('mkdir'),
    path: absolutePathSchema,
    /** Missing parents too; a directory that is there is fine. */
    recursive: z.boolean().optional(),
    mode: z
      .string()
      .regex(/^0?[0-7]{3}$/, 'must be an octal mode such as 0755')
      .optional(),
  }),
  z.strictObject({
    operation: z.literal('move'),
    from: absolutePathSchema,
    to: absolutePathSchema,
    /** False (the default) fails with `AlreadyExists` where `to` is taken. */
    overwrite: z.boolean().optional(),
  }),
  z.strictObject({
    operation: z.literal('copy'),
    from: absolutePathSchema,
    to: absolutePathSchema,
    /** Needed for directories. */
    recursive: z.boolean().optional(),
    overwrite: z.boolean().optional(),
  }),
])
export type FileOperation = z.infer<typeof fileOperationSchema>

/** One line of `GET /v1/tree/{directory}`: an entry with its path relative to the directory. */
export const treeEntrySchema = fileInfoSchema.extend({ path: z.string() })
export type TreeEntry = z.infer<typeof treeEntrySchema>

/** One line of `GET /v1/watch/{path}`. `ready`: the watch stands. `overflow`: changes were missed, look again. */
export const fileChangeSchema = z.object({
  type: z.enum(['ready', 'created', 'modified', 'deleted', 'overflow', 'heartbeat']),
  /** Relative to the watched directory; absent for `ready`, `overflow` and `heartbeat`. */
  path: z.string().optional(),
})
export type FileChange = z.infer<typeof fileChangeSchema>

/** `PUT /v1/binding`: what a sandbox that started before its claim is given. Replaces what was bound before. */
export const sandboxBindingSchema = z.strictObject({
  /** Added to the environment of every process started from now on. */
  env: z.record(z.string().regex(/^[^=\0]+$/, 'must be a name without "=" and NUL'), z.string().max(128 * 1024)),
})
export type SandboxBinding = z.infer<typeof sandboxBindingSchema>

/** `GET /v1/metrics`: what the sandbox uses, as its own kernel counters tell. */
export const sandboxMetricsSchema = z.object({
  cpu_usage_seconds: z.number().nonnegative(),
  memory_usage_bytes: z.number().int().nonnegative(),
  memory_limit_bytes: z.number().int().positive().optional(),
  disk_usage_bytes: z.number().int().nonnegative(),
  disk_total_bytes: z.number().int().nonnegative(),
  network_received_bytes: z.number().int().nonnegative(),
  network_sent_bytes: z.number().int().nonnegative(),
  uptime_seconds: z.number().nonnegative(),
  processes: z.number().int().nonnegative(),
})
export type SandboxMetricsRecord = z.infer<typeof sandboxMetricsSchema>
