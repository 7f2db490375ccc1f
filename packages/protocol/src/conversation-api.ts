import { taskModes } from '@corral/resources/task-words'
import * as z from 'zod'
import { branchNameSchema, plainText, taskLimits } from './task-api.js'

/** A remark on a place of the change, for the agent. */
export const taskCommentSchema = z.strictObject({
  path: plainText(4096),
  line: z.number().int().min(1).optional(),
  /** First line of a range that ends at `line`. */
  start_line: z.number().int().min(1).optional(),
  /** Which side of the diff the line is counted on; the new one without it. */
  side: z.enum(['old', 'new']).optional(),
  /** The code it is about, as the agent shall see it. */
  code: z
    .string()
    .max(16 * 1024)
    .optional(),
  text: plainText(16 * 1024),
})
export type TaskComment = z.infer<typeof taskCommentSchema>

/** `POST /tasks/{id}/messages`. To an ended task: a follow-up, a task of its own. To another: queued until then. */
export const taskMessageRequestSchema = z.strictObject({
  task: plainText(taskLimits.promptCharacters),
  comments: z.array(taskCommentSchema).max(200).optional(),
  /** `plan`: the follow-up plans first. */
  mode: z.enum(taskModes).optional(),
  /** Another branch for the follow-up; that of the former task without it, unless another follow-up has it. */
  new_branch: branchNameSchema.optional(),
})
export type TaskMessageRequest = z.infer<typeof taskMessageRequestSchema>

const revision = z.number().int().min(1)
const remark = plainText(taskLimits.promptCharacters)

/** `POST /tasks/{id}/approve`. Every decision names the revision of the plan that was read. */
export const approvePlanRequestSchema = z.strictObject({
  revision,
  /** The plan as it shall be carried out, where it was changed. */
  plan: plainText(taskLimits.promptCharacters).optional(),
  remark: remark.optional(),
})
export type ApprovePlanRequest = z.infer<typeof approvePlanRequestSchema>

/** `POST /tasks/{id}/revise`: the agent plans again. */
export const revisePlanRequestSchema = z.strictObject({ revision, remark })
export type RevisePlanRequest = z.infer<typeof revisePlanRequestSchema>

/** `POST /tasks/{id}/reject`: the task ends as CANCELLED. */
export const rejectPlanRequestSchema = z.strictObject({ revision, remark: remark.optional() })
export type RejectPlanRequest = z.infer<typeof rejectPlanRequestSchema>

/** `POST /tasks/{id}/answers`. One of the two: an option by its id, or a text where the question takes one. */
export const answerQuestionRequestSchema = z
  .strictObject({
    question: plainText(200),
    option: plainText(200).optional(),
    answer: plainText(16 * 1024).optional(),
  })
  .refine(({ option, answer }) => (option === undefined) !== (answer === undefined), 'needs an option or an answer')
export type AnswerQuestionRequest = z.infer<typeof answerQuestionRequestSchema>

/** The answer to a message to a task that has not ended. */
export const messageDeliverySchema = z.object({
  /**
   * `queued`: it becomes a follow-up when the task has ended. `steered`: it is given to the running agent; should that end
   * before it reads it, it becomes a follow-up as well.
   */
  delivery: z.enum(['steered', 'queued']),
  message_id: z.string(),
})
export type MessageDelivery = z.infer<typeof messageDeliverySchema>

/** What an agent is told: the message, then each comment with its place. */
export function messageText({ task, comments = [] }: Pick<TaskMessageRequest, 'task' | 'comments'>): string {
  if (comments.length === 0) return task
  const remarks = comments.map(({ path, line, start_line: start, side, code, text }) => {
    const lines = start === undefined || start === line ? `${line}` : `${start}-${line}`
    const place = line === undefined ? path : `${path}:${lines}${side === 'old' ? ' (before the change)' : ''}`
    return [`- ${place}`, ...(code === undefined ? [] : indented(code, '  > ')), ...indented(text, '  ')].join('\n')
  })
  return `${task}\n\nComments on the change:\n${remarks.join('\n')}`
}

const indented = (text: string, prefix: string): string[] => text.split('\n').map((line) => `${prefix}${line}`)
