import { finalTaskPhases, taskOutcomes, taskPhases, taskStages } from '@corral/resources/task-words'
import * as z from 'zod'

/** Sizes nothing in an event may exceed. What is longer is cut, and says so. */
export const eventLimits = {
  textCharacters: 64 * 1024,
  outputCharacters: 16 * 1024,
  summaryCharacters: 2 * 1024,
  pathCharacters: 4 * 1024,
} as const

export const taskStageSchema = z.enum(taskStages)
export const taskPhaseSchema = z.enum(taskPhases)
export const finalTaskPhaseSchema = z.enum(finalTaskPhases)
export const taskOutcomeSchema = z.enum(taskOutcomes)

export const taskCauseSchema = z.object({
  code: z.string().max(100),
  message: z.string().max(eventLimits.textCharacters),
  hint: z.string().max(eventLimits.summaryCharacters).optional(),
})

export const diffStatSchema = z.object({
  files_changed: z.number().int().nonnegative(),
  insertions: z.number().int().nonnegative(),
  deletions: z.number().int().nonnegative(),
})
export type DiffStat = z.infer<typeof diffStatSchema>

/** Something about the result that did not fail the task but that its owner should know. */
export const taskWarningSchema = z.object({
  /** A code of the warning table. */
  code: z.string().max(100),
  message: z.string().max(eventLimits.summaryCharacters),
  /** The path of the repository it is about. */
  path: z.string().max(eventLimits.pathCharacters).exactOptional(),
})
export type TaskWarning = z.infer<typeof taskWarningSchema>

/** A destination that a task asked for and did not get. */
export const refusedHostSchema = z.object({
  host: z.string().max(253),
  /** Known where the name was granted: a name that is not is refused before a port is asked for. */
  port: z.number().int().optional(),
  reason: z.enum(['NotAllowed', 'TooManyNames', 'Unresolved', 'ForbiddenAddress', 'Unreachable']),
  count: z.number().int().nonnegative(),
  /** The process that asked first, such as `node install.mjs`, where it could be seen. */
  process: z.string().max(140).optional(),
})

export const usageSchema = z.object({
  model: z.string().max(200).optional(),
  input_tokens: z.number().int().nonnegative(),
  output_tokens: z.number().int().nonnegative(),
  cache_read_tokens: z.number().int().nonnegative().default(0),
  cache_write_tokens: z.number().int().nonnegative().default(0),
  /** Absent when the price of the model is not known. */
  cost_usd: z.number().nonnegative().optional(),
})
export type Usage = z.infer<typeof usageSchema>
