import type { TaskQuestion, TaskView } from '@corral/protocol'
import type { AgentTask } from '@corral/resources'
import { answerOf, answerWords } from './question-answer.js'

/** Questions as the API shows them. An answer counts as soon as it was given, before the agent has heard it. */
export function questionsView(task: AgentTask): TaskQuestion[] | undefined {
  return task.status?.input?.questions.map((question) => {
    const { id, kind, text, options = [], askedAt, expiresAt, settledAt, outcome } = question
    const given = outcome === undefined ? answerOf(task, id) : undefined
    const answer = given ? answerWords(question, given) : question.answer
    const end = given?.at ?? settledAt
    const how = given ? 'answered' : outcome
    return {
      ...{ id, kind, text, options, asked_at: askedAt, expires_at: expiresAt },
      ...(how ? { outcome: how } : {}),
      ...(answer === undefined ? {} : { answer }),
      ...(end ? { settled_at: end } : {}),
    }
  })
}

export function messagesView({ spec, status }: AgentTask): TaskView['messages'] {
  return spec.messages?.map(({ id, text, at, steer }) => ({
    ...{ id, task: text, at, delivery: steer ? 'steered' : 'queued' },
    ...(steer ? { read: status?.readMessages?.includes(id) === true } : {}),
  }))
}
