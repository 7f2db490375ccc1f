import * as z from 'zod'

/** Sizes nothing in an event may exceed. What is longer is cut, and says so. */
export const eventLimits = {
  textCharacters: 64 * 1024,
  outputCharacters: 16 * 1024,
  summaryCharacters: 2 * 1024,
  pathCharacters: 4 * 1024,
} as const

const text = z.string().max(eventLimits.textCharacters)
const summary = z.string().max(eventLimits.summaryCharacters)

/** The steps of a task, in order. */
export const taskStages = ['claim', 'sandbox', 'repository', 'setup', 'agent', 'result', 'push', 'cleanup'] as const
export const taskStageSchema = z.enum(taskStages)
export type TaskStage = z.infer<typeof taskStageSchema>

export const diffStatSchema = z.object({
  files_changed: z.number().int().nonnegative(),
  insertions: z.number().int().nonnegative(),
  deletions: z.number().int().nonnegative(),
})
export type DiffStat = z.infer<typeof diffStatSchema>

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

export const stageEventSchema = z.object({
  type: z.literal('stage'),
  stage: taskStageSchema,
  state: z.enum(['started', 'finished', 'failed']),
  detail: summary.optional(),
})

/** What the agent or the user said. */
export const messageEventSchema = z.object({
  type: z.literal('message'),
  role: z.enum(['assistant', 'user', 'system']),
  text,
  /** Reasoning shown apart from the answer. */
  thinking: z.boolean().optional(),
})

export const toolCallEventSchema = z.object({
  type: z.literal('tool_call'),
  call_id: z.string().max(200),
  tool: z.string().max(200),
  /** One line for people: the command, the path, the pattern. */
  summary,
  /** The arguments as JSON text, cut when long. */
  input: text.optional(),
})

export const toolResultEventSchema = z.object({
  type: z.literal('tool_result'),
  call_id: z.string().max(200),
  is_error: z.boolean(),
  text,
})

export const fileChangedEventSchema = z.object({
  type: z.literal('file_changed'),
  path: z.string().max(eventLimits.pathCharacters),
  change: z.enum(['written', 'edited', 'deleted']),
})

export const usageEventSchema = usageSchema.extend({
  type: z.literal('usage'),
  /** `total` replaces what was counted before; `delta` adds to it. */
  scope: z.enum(['total', 'delta']),
})

export const errorEventSchema = z.object({
  type: z.literal('error'),
  /** A code of the error or cause table where one fits. */
  code: z.string().max(100).optional(),
  message: text,
})

/** Raw output of a command, decoded as UTF-8; a long line arrives in pieces. */
export const outputEventSchema = z.object({
  type: z.literal('output'),
  stream: z.enum(['stdout', 'stderr']),
  text: z.string().max(eventLimits.outputCharacters),
  /** The stage whose command wrote it; absent means the agent. */
  stage: taskStageSchema.optional(),
})

export const taskOutcomes = ['changes', 'no_changes'] as const
export const taskPhases = [
  'QUEUED',
  'PROVISIONING',
  'RUNNING',
  'SUCCEEDED',
  'FAILED',
  'TIMED_OUT',
  'CANCELLED',
] as const
export const taskPhaseSchema = z.enum(taskPhases)
export type TaskPhase = z.infer<typeof taskPhaseSchema>

export const taskCauseSchema = z.object({
  code: z.string().max(100),
  message: text,
  hint: summary.optional(),
})

/** The last event of every task. */
export const resultEventSchema = z.object({
  type: z.literal('result'),
  status: z.enum(['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELLED']),
  outcome: z.enum(taskOutcomes).optional(),
  cause: taskCauseSchema.optional(),
  branch: z.string().max(300).optional(),
  commit: z.string().max(64).optional(),
  diff_stat: diffStatSchema.optional(),
})

/** What an agent adapter makes of its agent's output. */
export const agentEventSchema = z.discriminatedUnion('type', [
  messageEventSchema,
  toolCallEventSchema,
  toolResultEventSchema,
  fileChangedEventSchema,
  usageEventSchema,
  errorEventSchema,
  outputEventSchema,
])
export type AgentEvent = z.infer<typeof agentEventSchema>

/** An event before it has its place in the log. */
export const taskEventBodySchema = z.discriminatedUnion('type', [
  stageEventSchema,
  messageEventSchema,
  toolCallEventSchema,
  toolResultEventSchema,
  fileChangedEventSchema,
  usageEventSchema,
  errorEventSchema,
  outputEventSchema,
  resultEventSchema,
])
export type TaskEventBody = z.infer<typeof taskEventBodySchema>

/** One line of a task's log: sequences start at 1 and have no gaps. */
export const taskEventSchema = z.intersection(
  z.object({ sequence: z.number().int().positive(), time: z.iso.datetime() }),
  taskEventBodySchema,
)
export type TaskEvent = z.infer<typeof taskEventSchema>

/** Whether no event follows this one. */
export const isTerminalEvent = (event: TaskEventBody): boolean => event.type === 'result'

/** `value` cut to `maxCharacters`, with a mark that says how much is missing. Never splits a surrogate pair. */
export function clipText(value: string, maxCharacters: number): string {
  if (value.length <= maxCharacters) return value
  const mark = `… [${value.length - maxCharacters} more characters]`
  let end = Math.max(0, maxCharacters - mark.length)
  const last = value.charCodeAt(end - 1)
  if (last >= 0xd800 && last <= 0xdbff) end -= 1
  return (value.slice(0, end) + mark).slice(0, maxCharacters)
}
