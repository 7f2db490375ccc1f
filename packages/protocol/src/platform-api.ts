import * as z from 'zod'

/** What the pages show of the platform itself: agents, keys, sandboxes, pools, the objects behind them. */

const time = z.iso.datetime({ offset: true })

export const agentInfoSchema = z.object({
  name: z.string(),
  title: z.string(),
  summary: z.string(),
  /** The version new tasks use; absent where it is not installed or needs no installation. */
  version: z.string().optional(),
  /** Whether a task with it can start now. */
  is_ready: z.boolean(),
  /** Why not, and what to do. */
  problem: z.string().optional(),
  /** The command that installs it, where it is missing. */
  install: z.string().optional(),
  /** The secret its provider needs, where none is set. */
  needs_secret: z.string().optional(),
  /** Whether a request gives the command line to run. */
  takes_command: z.boolean(),
})
export type AgentInfo = z.infer<typeof agentInfoSchema>
export const agentListSchema = z.object({ agents: z.array(agentInfoSchema) })

/** A secret by name: its value is never told. */
export const secretInfoSchema = z.object({
  name: z.string(),
  is_set: z.boolean(),
  /** What it is for. */
  title: z.string().optional(),
})
export type SecretInfo = z.infer<typeof secretInfoSchema>
export const secretListSchema = z.object({ secrets: z.array(secretInfoSchema) })
export const setSecretRequestSchema = z.strictObject({
  value: z
    .string()
    .min(1)
    .max(64 * 1024)
    .refine((value) => !value.includes('\0'), 'must not contain a NUL character'),
})

export const sandboxInfoSchema = z.object({
  name: z.string(),
  state: z.enum(['ready', 'waiting', 'failed', 'suspended']),
  reason: z.string().optional(),
  message: z.string().optional(),
  /** The pool that keeps it warm, or made it. */
  pool: z.string().optional(),
  claim: z.string().optional(),
  task: z.string().optional(),
  pod: z.string().optional(),
  addresses: z.array(z.string()).optional(),
  node: z.string().optional(),
  runtime_class: z.string().optional(),
  created_at: time,
})
export type SandboxInfo = z.infer<typeof sandboxInfoSchema>
export const sandboxListSchema = z.object({ sandboxes: z.array(sandboxInfoSchema) })

export const poolInfoSchema = z.object({
  name: z.string(),
  template: z.string(),
  replicas: z.number().int().nonnegative(),
  ready: z.number().int().nonnegative(),
  created_at: time,
})
export type PoolInfo = z.infer<typeof poolInfoSchema>
export const poolListSchema = z.object({ pools: z.array(poolInfoSchema) })
export const resizePoolRequestSchema = z.strictObject({ replicas: z.number().int().min(0).max(1000) })

/** Kinds whose objects can be looked at, by the name kubectl takes. */
export const shownKinds = [
  'agenttask',
  'project',
  'sandbox',
  'sandboxclaim',
  'sandboxwarmpool',
  'sandboxtemplate',
  'pod',
] as const
export type ShownKind = (typeof shownKinds)[number]

/** An object as `kubectl get -o yaml` shows it, and what was reported about it. */
export const objectViewSchema = z.object({
  kind: z.string(),
  name: z.string(),
  namespace: z.string(),
  yaml: z.string(),
  events: z.array(
    z.object({
      type: z.string(),
      reason: z.string(),
      message: z.string(),
      count: z.number().int(),
      last_seen: z.string().optional(),
    }),
  ),
})
export type ObjectView = z.infer<typeof objectViewSchema>

/** One thing the platform needs of its cluster, looked at by itself. */
export const connectionCheckSchema = z.object({
  check: z.string(),
  title: z.string(),
  /** `skipped`: it needs something that another check has found missing. */
  state: z.enum(['ok', 'warn', 'fail', 'skipped']),
  detail: z.string(),
  remedy: z.string().optional(),
  /** A command that is the remedy, or the first step to it. */
  command: z.string().optional(),
  ms: z.number().nonnegative(),
})
export type ConnectionCheck = z.infer<typeof connectionCheckSchema>
