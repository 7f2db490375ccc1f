import { setTimeout as pause } from 'node:timers/promises'
import { CorralError, isFinalPhase, type TaskQuestion, type TasksClient } from '@corral/protocol'
import { answerFrom } from '../output/question-text.js'
import { ask } from './ask-follow-up.js'

/** The question once the record of its task holds it; undefined where it was settled, or the task has ended. */
export async function waitingQuestion(
  client: TasksClient,
  id: string,
  name: string,
): Promise<TaskQuestion | undefined> {
  for (;;) {
    const { status, questions = [] } = await client.get(id)
    const question = questions.find((known) => known.id === name)
    if (question) return question.outcome ? undefined : question
    if (isFinalPhase(status) || status === 'QUEUED') return undefined
    await pause(100)
  }
}

/** Asks on the terminal and tells the agent. Leaving the question answers nothing; what does not fit is asked again. */
export async function askQuestion(client: TasksClient, id: string, question: TaskQuestion): Promise<void> {
  const what = question.kind === 'permission' ? 'number or words' : 'number or your own words'
  for (;;) {
    const text = await ask(`answer (${question.options.length > 0 ? what : 'in words'}): `)
    const answer = text === undefined ? undefined : answerFrom(text, question.options)
    if (!answer) {
      process.stderr.write(`corral: unanswered; go on with \`corral task answer ${id}\`\n`)
      return
    }
    try {
      await client.answer(id, { question: question.id, ...answer })
      return
    } catch (error) {
      if (!(error instanceof CorralError)) throw error
      process.stderr.write(`corral: ${error.message}\n`)
      // The question was answered elsewhere, or has expired.
      if (error.code !== 'Invalid') return
    }
  }
}
