import * as z from 'zod'

export const checkLimits = {
  checks: 20,
  maxRounds: 10,
  defaultRounds: 2,
  defaultTimeoutSeconds: 600,
  maxTimeoutSeconds: 6 * 60 * 60,
} as const

const checkName = z
  .string()
  .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/, 'must be up to 63 letters, digits, dots, dashes')

/** A command that tells by its exit code whether the work is good. It runs with `/bin/sh -c` at the top of the checkout. */
export const checkSchema = z.strictObject({
  /** Unique among the checks of a task. */
  name: checkName,
  command: z
    .string()
    .min(1)
    .max(64 * 1024)
    .refine((text) => !text.includes('\0'), 'must not contain a NUL character'),
  timeout_seconds: z.number().int().min(1).max(checkLimits.maxTimeoutSeconds).optional(),
})
export type Check = z.infer<typeof checkSchema>

/** A task's checks. Names are unique, so that a result can be told by its name. */
export const checksSchema = z
  .array(checkSchema)
  .max(checkLimits.checks)
  .superRefine((checks, context) => {
    const names = checks.map(({ name }) => name)
    const twice = names.find((name, index) => names.indexOf(name) !== index)
    if (twice !== undefined) context.addIssue({ code: 'custom', message: `two checks are named "${twice}"` })
  })

/** What becomes of a branch whose checks still fail: it is pushed and the task marked, or it is not pushed. */
export const failedChecksPolicySchema = z.enum(['push', 'no-push'])

export const checkOutcomes = ['passed', 'failed', 'timed_out'] as const
export const checkOutcomeSchema = z.enum(checkOutcomes)

/** How one check went in one round. */
export const checkResultSchema = z.object({
  name: z.string(),
  outcome: checkOutcomeSchema,
  exit_code: z.number().int().optional(),
  duration_ms: z.number().int().nonnegative(),
  /** The end of what it wrote; more of it is the artifact `check-ROUND-NAME.log`. */
  output: z.string().max(4096).optional(),
})
export type CheckResult = z.infer<typeof checkResultSchema>

/** All checks after one run of the agent. */
export const checkRoundSchema = z.object({
  round: z.number().int().positive(),
  passed: z.boolean(),
  started_at: z.iso.datetime({ offset: true }),
  finished_at: z.iso.datetime({ offset: true }),
  results: z.array(checkResultSchema),
})
export type CheckRound = z.infer<typeof checkRoundSchema>

/** The checks of a task as its view shows them: what is asked for, and each round so far. */
export const taskChecksSchema = z.object({
  list: z.array(checkSchema),
  /** Rounds the agent may be sent back for. */
  check_rounds: z.number().int().nonnegative(),
  on_failed_checks: failedChecksPolicySchema,
  rounds: z.array(checkRoundSchema),
})
export type TaskChecks = z.infer<typeof taskChecksSchema>
