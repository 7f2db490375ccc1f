import * as z from 'zod'
import { dateTime, int64 } from './schema-parts.js'

/** An answer of a person to a question of the agent. */
export const answerSchema = z.object({
  question: z.string().describe('The id of the question.'),
  option: z.string().exactOptional().describe('The id of the option that was chosen.'),
  text: z.string().exactOptional().describe('What was answered, where it is none of the options.'),
  at: dateTime().describe('When it was given.'),
})

/** What the agent asks while it runs. */
export const inputStatusSchema = z.object({
  waitedMs: int64().min(0).describe('How long the agent has waited for answers so far, the wait that lasts left out.'),
  waitingSince: dateTime().exactOptional().describe('Since when it waits; unset while it does not.'),
  questions: z
    .array(
      z.object({
        id: z.string().describe('Names it in its task.'),
        kind: z.enum(['permission', 'input']).describe('Whether it asks for a permission or for something to know.'),
        text: z.string().describe('What is asked.'),
        options: z
          .array(
            z.object({
              id: z.string().describe('Names it in an answer.'),
              label: z.string().describe('What it says.'),
            }),
          )
          .exactOptional()
          .describe('What can be answered; any text where there are none.'),
        askedAt: dateTime().describe('When it was asked.'),
        expiresAt: dateTime().describe('Until when it waits for an answer.'),
        settledAt: dateTime().exactOptional().describe('When it was settled; unset while it waits.'),
        outcome: z
          .enum(['answered', 'withdrawn', 'expired'])
          .exactOptional()
          .describe('How it was settled; unset while it waits.'),
        answer: z.string().exactOptional().describe('What was answered.'),
      }),
    )
    .meta({ 'x-kubernetes-list-type': 'atomic', description: 'The latest ones, in the order they were asked.' }),
})
