import {
  type AgentTask,
  type AgentTaskStatus,
  type Condition,
  defaultQuestionExpirySeconds,
  findCondition,
  type Stored,
  setCondition,
  taskInputCondition,
} from '@corral/resources'
import { answerOf, answerWords } from './question-answer.js'

type InputStatus = NonNullable<AgentTaskStatus['input']>
export type RecordedQuestion = InputStatus['questions'][number]

/** How the conversation with a running agent stands, as its output tells. */
export interface TalkReport {
  /** What it asks and waits for. */
  open: readonly Pick<RecordedQuestion, 'id' | 'kind' | 'text' | 'options'>[]
  /** The messages it has read, by id. */
  read: readonly string[]
}

/** Settled questions that stay in the record; all are in the log. */
const keptQuestions = 20

/** Whether the agent waits for an answer. */
export function isAwaitingInput({ status }: AgentTask): boolean {
  return findCondition(status?.conditions ?? [], taskInputCondition)?.status === 'Unknown'
}

export function openQuestions({ status }: AgentTask): RecordedQuestion[] {
  return (status?.input?.questions ?? []).filter(({ outcome }) => outcome === undefined)
}

/** How long the agent has waited for answers, until now. Its timeout stands still meanwhile. */
export function waitedMs({ status }: AgentTask, now: Date): number {
  const { waitedMs: before = 0, waitingSince } = status?.input ?? {}
  return before + (waitingSince ? Math.max(0, now.getTime() - Date.parse(waitingSince)) : 0)
}

/** When the first unanswered question expires; undefined where none waits for a person. */
export function questionExpiryMs(task: AgentTask): number | undefined {
  const times = openQuestions(task)
    .filter(({ id }) => answerOf(task, id) === undefined)
    .map(({ expiresAt }) => Date.parse(expiresAt))
  return times.length > 0 ? Math.min(...times) : undefined
}

/** Whether a question waited too long: the agent is then ended, its work kept. */
export function isQuestionExpired(task: AgentTask, now: Date): boolean {
  const untilMs = isAwaitingInput(task) ? questionExpiryMs(task) : undefined
  return untilMs !== undefined && now.getTime() >= untilMs
}

export function questionExpiredMessage(task: AgentTask): string {
  const [question] = openQuestions(task)
  return `the agent got no answer until ${question?.expiresAt ?? ''}: ${question?.text ?? ''}`.slice(0, 1024)
}

/** The report, where the record of the task does not say it yet. */
export function unrecorded(task: AgentTask, report: TalkReport | undefined): TalkReport | undefined {
  if (!report) return undefined
  const known = new Map((task.status?.input?.questions ?? []).map((question) => [question.id, question]))
  const isNew = report.open.some(({ id }) => !known.has(id))
  const isSettled = openQuestions(task).some(({ id }) => !report.open.some((open) => open.id === id))
  const isRead = report.read.some((id) => !task.status?.readMessages?.includes(id))
  return isNew || isSettled || isRead ? report : undefined
}

/** The task with what its agent asks and has read. A question that was settled is not opened again. */
export function withTalk(task: Stored<AgentTask>, report: TalkReport, now: Date): Stored<AgentTask> {
  const { input, readMessages = [] } = task.status ?? {}
  const known = input?.questions ?? []
  const isOpen = (id: string): boolean => report.open.some((open) => open.id === id)
  const expirySeconds = task.spec.questionExpirySeconds ?? defaultQuestionExpirySeconds
  const expiresAt = new Date(now.getTime() + expirySeconds * 1000).toISOString()
  const asked = report.open
    .filter(({ id }) => !known.some((question) => question.id === id))
    .map((question) => ({ ...question, askedAt: now.toISOString(), expiresAt }))
  const questions = [
    ...known.map((question) => (isOpen(question.id) ? question : settled(task, question, now))),
    ...asked,
  ]
  const read = [...new Set([...readMessages, ...report.read])]
  const status: AgentTaskStatus = {
    ...task.status,
    ...(questions.length > 0 ? { input: withWaiting(input, questions, now) } : {}),
    ...(read.length > 0 ? { readMessages: read } : {}),
  }
  return { ...task, status: { ...status, conditions: inputConditions(status, now) } }
}

/** The agent is over: nothing waits for an answer any more. */
export function withoutTalk(task: AgentTask, now: Date, isExpired: boolean): Pick<AgentTaskStatus, 'input'> {
  const { input } = task.status ?? {}
  if (!input || (input.waitingSince === undefined && openQuestions(task).length === 0)) return {}
  const questions = input.questions.map((question) => {
    const next = settled(task, question, now)
    return isExpired && question.outcome === undefined && next.outcome === 'withdrawn'
      ? { ...next, outcome: 'expired' as const }
      : next
  })
  return { input: withWaiting(input, questions, now) }
}

/** Conditions with the one about input as `input` says; without one where nothing was ever asked. */
export function inputConditions({ conditions = [], input }: AgentTaskStatus, now: Date): Condition[] {
  if (!input) return conditions
  const open = input.questions.filter(({ outcome }) => outcome === undefined)
  const condition: Condition = {
    type: taskInputCondition,
    ...(open[0]
      ? { status: 'Unknown', reason: 'WaitingForAnswer', message: open[0].text.slice(0, 1024) }
      : { status: 'True', reason: 'NothingOpen', message: 'no question waits for an answer' }),
    lastTransitionTime: `${now.toISOString().slice(0, 19)}Z`,
  }
  return setCondition(conditions, condition, now)
}

function settled(task: AgentTask, question: RecordedQuestion, now: Date): RecordedQuestion {
  if (question.outcome !== undefined) return question
  const answer = answerOf(task, question.id)
  const settledAt = now.toISOString()
  if (!answer) return { ...question, settledAt, outcome: 'withdrawn' }
  return { ...question, settledAt, outcome: 'answered', answer: answerWords(question, answer) }
}

function withWaiting(input: InputStatus | undefined, questions: RecordedQuestion[], now: Date): InputStatus {
  const { waitedMs: before = 0, waitingSince } = input ?? {}
  const open = questions.filter(({ outcome }) => outcome === undefined)
  const done = questions.filter(({ outcome }) => outcome !== undefined).slice(-keptQuestions)
  const kept = questions.filter((question) => open.includes(question) || done.includes(question))
  if (open.length > 0) return { waitedMs: before, waitingSince: waitingSince ?? now.toISOString(), questions: kept }
  const more = waitingSince ? Math.max(0, now.getTime() - Date.parse(waitingSince)) : 0
  return { waitedMs: before + more, questions: kept }
}
