import { planVerdicts } from '@corral/resources/task-words'
import * as z from 'zod'
import { checkResultSchema } from './check-api.js'
import {
  diffStatSchema,
  eventLimits,
  finalTaskPhaseSchema,
  taskCauseSchema,
  taskOutcomeSchema,
  taskStageSchema,
  taskWarningSchema,
  usageSchema,
} from './task-state.js'
import { type TaskView, taskViewSchema } from './task-view.js'

const text = z.string().max(eventLimits.textCharacters)
const summary = z.string().max(eventLimits.summaryCharacters)

export const stageEventSchema = z.object({
  type: z.literal('stage'),
  stage: taskStageSchema,
  /** `progress` may come any number of times between start and end. */
  state: z.enum(['started', 'progress', 'finished', 'failed']),
  detail: summary.optional(),
})

/** What the agent or the user said. */
export const messageEventSchema = z.object({
  type: z.literal('message'),
  role: z.enum(['assistant', 'user', 'system']),
  text,
  /** Reasoning shown apart from the answer. */
  thinking: z.boolean().optional(),
  /** `steered`: a user said it while the agent worked, and the agent has read it. */
  delivery: z.literal('steered').optional(),
  /** Of a message that was sent: its id. */
  message_id: z.string().max(200).optional(),
})

/** The agent waits for a person: an answer goes to `POST /tasks/{id}/answers`. */
export const questionEventSchema = z.object({
  type: z.literal('question'),
  question: z.string().max(200),
  kind: z.enum(['permission', 'input']),
  text,
  /** What can be answered; any text where there are none. */
  options: z.array(z.object({ id: z.string().max(200), label: z.string().max(200) })).max(50),
})

/** What a question was answered with. */
export const answerEventSchema = z.object({
  type: z.literal('answer'),
  question: z.string().max(200),
  text: text.optional(),
  /** The agent went on without an answer. */
  withdrawn: z.boolean().optional(),
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

/** One call of a model, as the broker saw it. What was said in it is not kept. */
export const modelCallEventSchema = usageSchema.extend({
  type: z.literal('model_call'),
  provider: z.string().max(100),
  /** The HTTP status of the answer; 0 where there was none. */
  status: z.number().int().nonnegative(),
  duration_ms: z.number().int().nonnegative(),
  first_byte_ms: z.number().int().nonnegative().optional(),
  /** The provider did not tell all counts, so that they were estimated from what went through. */
  estimated: z.boolean().optional(),
  /** Times the provider said "not now" before it answered. */
  retries: z.number().int().nonnegative().optional(),
  /** Why the broker did not pass the call on, or what went wrong with it. */
  error: summary.optional(),
  /** A code of the cause table where the call ends the task. */
  code: z.string().max(100).optional(),
})
export type ModelCallEvent = z.infer<typeof modelCallEventSchema>

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
  /** The check whose command wrote it, in the stage of the checks. */
  check: z.string().max(100).optional(),
})

/** One check of one round. What it wrote is the artifact `check-ROUND-NAME.log`. */
export const checkEventSchema = checkResultSchema.extend({
  type: z.literal('check'),
  round: z.number().int().positive(),
})

/** The end of a round of checks; `message` is what the agent was sent back with. */
export const checkRoundEventSchema = z.object({
  type: z.literal('check_round'),
  round: z.number().int().positive(),
  passed: z.boolean(),
  message: text.optional(),
})

export const warningEventSchema = taskWarningSchema.extend({ type: z.literal('warning') })

/** What the agent means to do; the task waits for a decision. */
export const planEventSchema = z.object({
  type: z.literal('plan'),
  revision: z.number().int().positive(),
  text,
})

/** What was decided about a plan. */
export const planDecisionEventSchema = z.object({
  type: z.literal('plan_decision'),
  revision: z.number().int().positive(),
  verdict: z.enum(planVerdicts),
  /** Whether the plan was changed before it was approved. */
  edited: z.boolean().optional(),
  remark: text.optional(),
})

/** The last event of every task. */
export const resultEventSchema = z.object({
  type: z.literal('result'),
  status: finalTaskPhaseSchema,
  outcome: taskOutcomeSchema.optional(),
  cause: taskCauseSchema.optional(),
  branch: z.string().max(300).optional(),
  commit: z.string().max(64).optional(),
  diff_stat: diffStatSchema.optional(),
  warnings: z.array(taskWarningSchema).optional(),
  /** The task as it is recorded: who reads this event need not ask for it. Absent in logs of earlier releases. */
  task: taskViewSchema.optional(),
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
  questionEventSchema,
  answerEventSchema,
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
  modelCallEventSchema,
  errorEventSchema,
  outputEventSchema,
  checkEventSchema,
  checkRoundEventSchema,
  warningEventSchema,
  planEventSchema,
  planDecisionEventSchema,
  questionEventSchema,
  answerEventSchema,
  resultEventSchema,
])
export type TaskEventBody = z.infer<typeof taskEventBodySchema>

const place = { sequence: z.number().int().positive(), time: z.iso.datetime() }

/** One line of a task's log: sequences start at 1 and have no gaps. */
export const taskEventSchema = z.intersection(z.object(place), taskEventBodySchema)
export type TaskEvent = z.infer<typeof taskEventSchema>

/** What every event has, of whatever type. */
export const taskEventHeadSchema = z.looseObject({ ...place, type: z.string() })

/** The task at its end, from its last event; undefined for other events and in logs of earlier releases. */
export function finalViewOf(event: TaskEvent): TaskView | undefined {
  return event.type === 'result' && event.task ? { ...event.task, last_event_sequence: event.sequence } : undefined
}

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
