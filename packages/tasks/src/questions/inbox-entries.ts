import type { AgentAdapter, AgentQuestion, InboxEntry } from '@corral/agents'
import type { AgentEvent } from '@corral/protocol'
import type { AgentTask } from '@corral/resources'
import { answerOf } from './question-answer.js'
import type { TalkReport } from './question-status.js'

/** What a run of the agent has said so far. */
export interface Heard {
  questions: readonly AgentQuestion[]
  read: readonly string[]
}

/** The name of a question in its task: those of runs after the first say which one. */
export function questionId(run: string, name: string): string {
  return run === '1' ? name : `${run}.${name}`
}

/** Events of a run with the names its questions have in the task. */
export function namedEvents(run: string, events: readonly AgentEvent[]): AgentEvent[] {
  return events.map((event) =>
    event.type === 'question' || event.type === 'answer'
      ? { ...event, question: questionId(run, event.question) }
      : event,
  )
}

export function reportOf(run: string, { questions, read }: Heard): TalkReport {
  return {
    open: questions.map(({ name, kind, text, choices }) => ({
      ...{ id: questionId(run, name), kind, text },
      ...(choices.length > 0 ? { options: choices.map(({ id, label }) => ({ id, label })) } : {}),
    })),
    read,
  }
}

/**
 * What a run is to be told, by the name of its file: messages it has not read, and answers to what it asks. A file that is
 * written again is the same one, so that it does not matter who wrote it before.
 */
export function inboxEntries(
  task: AgentTask,
  { questions, read }: Heard,
  { run, adapter }: { run: string; adapter: Pick<AgentAdapter, 'answer'> },
): Map<string, InboxEntry> {
  const entries = new Map<string, InboxEntry>()
  const isRead = (id: string): boolean => read.includes(id) || task.status?.readMessages?.includes(id) === true
  for (const [index, { id, text, steer }] of (task.spec.messages ?? []).entries())
    if (steer && !isRead(id))
      entries.set(`message-${String(index).padStart(4, '0')}.json`, { kind: 'message', id, text })
  for (const question of questions) {
    const answer = answerOf(task, questionId(run, question.name))
    if (answer && adapter.answer)
      entries.set(
        `answer-${question.name}.json`,
        adapter.answer(question, { choiceId: answer.option, text: answer.text }),
      )
  }
  return entries
}
