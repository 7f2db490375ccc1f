import type { AnswerQuestionRequest } from '@corral/protocol'
import type { AgentTask, AgentTaskStatus, Stored } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { isFinished, phaseOf } from '../task-state/stages.js'

type Question = NonNullable<AgentTaskStatus['input']>['questions'][number]
export type QuestionAnswer = NonNullable<AgentTask['spec']['answers']>[number]

/** Answers that stay in the task: a question has one, and more than this are never open at once. */
const keptAnswers = 100

/** What a question was answered with; undefined while it waits. */
export function answerOf({ spec }: AgentTask, question: string): QuestionAnswer | undefined {
  return spec.answers?.find((answer) => answer.question === question)
}

/** The answer as a person gave it: the words of the option, or the text. */
export function answerWords({ options = [] }: Pick<Question, 'options'>, answer: QuestionAnswer): string {
  return options.find(({ id }) => id === answer.option)?.label ?? answer.option ?? answer.text ?? ''
}

/**
 * The answers of a task with one more. Refused where it does not fit: twice, late, to a question that was not asked, or with
 * something that cannot be answered. The message says which.
 */
export function withAnswer(task: Stored<AgentTask>, request: AnswerQuestionRequest, now: Date): QuestionAnswer[] {
  const { name } = task.metadata
  const id = request.question
  const question = task.status?.input?.questions.find((known) => known.id === id)
  const given = answerOf(task, id)
  if (question && (given || question.outcome === 'answered'))
    throw new TaskError(
      'QuestionAnswered',
      `question ${id} was already answered: ${given ? answerWords(question, given) : (question.answer ?? '')}`,
    )
  if (question && (question.outcome === 'expired' || (!question.outcome && now >= new Date(question.expiresAt))))
    throw new TaskError('QuestionExpired', `question ${id} of task ${name} expired at ${question.expiresAt}`, {
      hint: `Go on with \`corral task send ${name} "..."\`.`,
    })
  if (question?.outcome === 'withdrawn')
    throw new TaskError('QuestionWithdrawn', `the agent of task ${name} no longer waits for question ${id}`)
  if (isFinished(task)) throw new TaskError('TaskFinished', `task ${name} has already ended (${phaseOf(task)})`)
  if (!question)
    throw new TaskError('QuestionUnknown', `task ${name} did not ask a question "${id.slice(0, 100)}"`, {
      hint: openHint(task),
    })
  const answer = { question: id, ...chosen(question, request), at: now.toISOString() }
  return [...(task.spec.answers ?? []), answer].slice(-keptAnswers)
}

/** Whether a question that is not in the record may be on its way there. */
export function mayStillAsk(task: AgentTask, question: string): boolean {
  const isKnown = task.status?.input?.questions.some(({ id }) => id === question) === true
  const { ask = 'never' } = task.spec
  return !isKnown && ask !== 'never' && ['RUNNING', 'WAITING_INPUT'].includes(phaseOf(task))
}

/** An option by its id, or by its words; any text for a question of what to know. */
function chosen(question: Question, { option, answer }: AnswerQuestionRequest): { option: string } | { text: string } {
  const options = question.options ?? []
  const wanted = option ?? answer ?? ''
  const found =
    options.find(({ id }) => id === wanted) ??
    options.find(({ label }) => label.toLowerCase() === wanted.trim().toLowerCase())
  if (found) return { option: found.id }
  if (option === undefined && question.kind === 'input') return { text: wanted }
  const choices = options.map(({ id, label }) => `${id} (${label})`).join(', ')
  throw new TaskError('Invalid', `question ${question.id} has no option "${wanted.slice(0, 100)}"`, {
    hint: choices === '' ? 'It takes any text: give `answer`.' : `Choose one of: ${choices}.`,
  })
}

function openHint(task: AgentTask): string {
  const open = (task.status?.input?.questions ?? []).filter(({ outcome }) => outcome === undefined)
  return open.length === 0
    ? `It is ${phaseOf(task)} and waits for no answer.`
    : `It waits for an answer to ${open.map(({ id }) => id).join(', ')}.`
}
