import { type AgentEvent, clipText, eventLimits } from '@corral/protocol'
import type { AgentQuestion } from './agent-adapter.js'
import { asString, type JsonObject } from './json-value.js'

const maxOpen = 100

/** A question before it has its name. */
export type AskedQuestion = Omit<AgentQuestion, 'name'>

/**
 * The questions of one run, from the agent's own requests and from the lines of the program beside it: a request is a
 * question when that program says that it waits for a person (`asks`), and none where it decided itself. Questions are named
 * in the order in which they are asked, so that the same output gives the same names.
 */
export class QuestionBook {
  readonly #requests = new Map<string, readonly AskedQuestion[]>()
  readonly #open = new Map<string, AgentQuestion>()
  #count = 0

  get open(): readonly AgentQuestion[] {
    return [...this.#open.values()]
  }

  /** The agent asks for something; one request may hold several questions. */
  requested(id: string, questions: readonly AskedQuestion[]): void {
    this.#requests.set(id, questions)
    // Those that were decided beside the agent are never asked, and only the latest can still be.
    for (const oldest of this.#requests.keys()) {
      if (this.#requests.size <= maxOpen) break
      this.#requests.delete(oldest)
    }
  }

  /** A line of the program beside the agent. */
  ownLine(line: JsonObject): AgentEvent[] {
    if (line.corral === 'asks') return this.#asks(asString(line.id) ?? '')
    if (line.corral === 'answered') return this.#settle(asString(line.name) ?? '', asString(line.text))
    return []
  }

  /** The agent no longer waits for these: they were settled without an answer from us. */
  withdraw(matches: (question: AgentQuestion) => boolean): AgentEvent[] {
    return this.open.filter(matches).flatMap(({ name }) => this.#settle(name, undefined))
  }

  #asks(id: string): AgentEvent[] {
    const questions = this.#open.size < maxOpen ? (this.#requests.get(id) ?? []) : []
    this.#requests.delete(id)
    return questions.map((asked) => {
      this.#count += 1
      const question = { ...asked, name: `q${this.#count}` }
      this.#open.set(question.name, question)
      return {
        type: 'question',
        question: question.name,
        kind: question.kind,
        text: question.text,
        options: question.choices.map(({ id: option, label }) => ({ id: option, label })),
      }
    })
  }

  #settle(name: string, text: string | undefined): AgentEvent[] {
    if (!this.#open.delete(name)) return []
    return [
      text === undefined
        ? { type: 'answer', question: name, withdrawn: true }
        : { type: 'answer', question: name, text: clipText(text, eventLimits.textCharacters) },
    ]
  }
}

/** More than a task has messages. Any code in the sandbox can print such lines, and the record of the task keeps their ids. */
const maxRead = 1_000

/** Notes that the agent has read a message; once for each. */
export function noteRead(read: string[], id: string): void {
  if (read.length < maxRead && !read.includes(id)) read.push(id)
}

/** A message that the agent took up while it worked. */
export function readMessage(line: JsonObject): { id: string; events: AgentEvent[] } | undefined {
  const id = asString(line.id)
  if (line.corral !== 'read' || id === undefined || id === '' || id.length > 200) return undefined
  const text = clipText(asString(line.text) ?? '', eventLimits.textCharacters)
  return { id, events: [{ type: 'message', role: 'user', text, delivery: 'steered', message_id: id }] }
}
