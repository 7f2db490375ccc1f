import { type AgentEvent, clipText, eventLimits } from '@corral/protocol'
import type { AgentQuestion } from './agent-adapter.js'
import { asString, type JsonObject } from './json-value.js'

const maxOpen = 100
/**
 * Of the lines that requests came in, which are kept until they are answered: parsed they take ten times as much, and a hundred
 * of the longest would be more than the platform has. The latest one is always kept.
 */
const maxHeldCharacters = 4 * 1024 * 1024
/** Of all that waits for a person, in the record of the task: an object of Kubernetes has a limit of its own. */
const maxShownCharacters = 128 * 1024

/** A question before it has its name. */
export type AskedQuestion = Omit<AgentQuestion, 'name'>

/**
 * The questions of one run, from the agent's own requests and from the lines of the program beside it: a request is a
 * question when that program says that it waits for a person (`asks`), and none where it decided itself. Questions are named
 * in the order in which they are asked, so that the same output gives the same names.
 */
export class QuestionBook {
  readonly #requests = new Map<string, Request>()
  readonly #open = new Map<string, { question: AgentQuestion; of: Request }>()
  #count = 0

  get open(): readonly AgentQuestion[] {
    return [...this.#open.values()].map(({ question }) => question)
  }

  /** The agent asks for something; one request may hold several questions. It came in a line of so many characters. */
  requested(id: string, questions: readonly AskedQuestion[], characters: number): void {
    // Deleted first: set again in its old place it would go before others that are older.
    this.#requests.delete(id)
    this.#requests.set(id, { questions, characters })
    // Those that were decided beside the agent are never asked, and only the latest can still be.
    let held = heldBy(this.#requests.values())
    for (const [oldest, request] of this.#requests) {
      if (oldest === id || (this.#requests.size <= maxOpen && held <= maxHeldCharacters)) break
      this.#requests.delete(oldest)
      held -= request.characters
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
    const request = this.#requests.get(id)
    this.#requests.delete(id)
    if (!request || !this.#hasRoomFor(request)) return []
    let shown = this.open.reduce((sum, question) => sum + shownCharacters(question), 0)
    return request.questions.flatMap((asked): AgentEvent[] => {
      shown += shownCharacters(asked)
      if (shown > maxShownCharacters) return []
      this.#count += 1
      const question = { ...asked, name: `q${this.#count}` }
      this.#open.set(question.name, { question, of: request })
      return [
        {
          type: 'question',
          question: question.name,
          kind: question.kind,
          text: question.text,
          options: question.choices.map(({ id: option, label }) => ({ id: option, label })),
        },
      ]
    })
  }

  #hasRoomFor({ characters }: Request): boolean {
    const held = heldBy(new Set([...this.#open.values()].map(({ of }) => of)))
    return this.#open.size === 0 || (this.#open.size < maxOpen && held + characters <= maxHeldCharacters)
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

interface Request {
  readonly questions: readonly AskedQuestion[]
  readonly characters: number
}

function heldBy(requests: Iterable<Request>): number {
  let sum = 0
  for (const { characters } of requests) sum += characters
  return sum
}

function shownCharacters({ text, choices }: AskedQuestion): number {
  return choices.reduce((sum, { id, label }) => sum + id.length + label.length, text.length)
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
