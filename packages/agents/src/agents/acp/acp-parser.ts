import { type AgentEvent, clipText, eventLimits } from '@corral/protocol'
import type { AgentExit, AgentQuestion, AgentVerdict } from '../../agent-adapter.js'
import { exitVerdict } from '../../exit-verdict.js'
import {
  errorEvents,
  fileChangedEvents,
  JsonLinesParser,
  messageEvents,
  toolCallEvent,
  toolResultEvent,
} from '../../json-lines-parser.js'
import { asArray, asCount, asObject, asString, type JsonObject } from '../../json-value.js'
import { noteRead, QuestionBook, readMessage } from '../../question-book.js'
import { questionsOf } from './acp-channel.js'

const maxOpenCalls = 1_000
/** As long as the names of calls and tools in events. */
const maxNameCharacters = 200

/** What is remembered of a call until its end. Its input, which may be megabytes, is not. */
interface OpenCall {
  title: string
  kind: string
  paths: string[]
  isTold: boolean
}

type SpeechKind = 'agent_message_chunk' | 'agent_thought_chunk'

/** Reads what our client prints: the messages of the Agent Client Protocol as the agent sent them. */
export class AcpParser extends JsonLinesParser {
  readonly #calls = new Map<string, OpenCall>()
  readonly #questions = new QuestionBook()
  readonly read: string[] = []
  #speech: { kind: SpeechKind; text: string } | undefined
  /** What it said since its last call: a plan has more than one paragraph. */
  #answer = ''
  #stopReason: string | undefined
  #failure: string | undefined
  #exitCode: number | undefined

  constructor() {
    super('the ACP agent')
  }

  get questions(): readonly AgentQuestion[] {
    return this.#questions.open
  }

  protected onLine(line: JsonObject): AgentEvent[] {
    if (line.corral !== undefined) return [...this.#endSpeech(), ...this.#ownLine(line)]
    if (line.method === 'session/update') return this.#update(asObject(asObject(line.params)?.update) ?? {})
    if (line.method !== undefined) return this.#asked(line)
    return [...this.#endSpeech(), ...this.#response(line)]
  }

  protected judge(exit: AgentExit): AgentVerdict {
    if (exit.signal !== undefined) return exitVerdict(this.program, exit)
    if (this.#failure !== undefined) {
      const isMissing = this.#exitCode === 127
      const text = clipText(this.#failure, eventLimits.summaryCharacters)
      return { ok: false, cause: isMissing ? 'AgentNotInstalled' : 'AgentFailed', message: text }
    }
    if (this.#stopReason === undefined)
      return { ok: false, cause: 'AgentFailed', message: 'the ACP agent ended without an answer' }
    if (this.#stopReason !== 'end_turn')
      return { ok: false, cause: 'AgentFailed', message: `the ACP agent stopped: ${this.#stopReason}` }
    return exitVerdict(this.program, exit)
  }

  protected override onEnd(): AgentEvent[] {
    return this.#endSpeech()
  }

  #ownLine(line: JsonObject): AgentEvent[] {
    if (line.corral === 'session') this.sessionId = asString(line.sessionId)
    const said = readMessage(line)
    if (said) {
      noteRead(this.read, said.id)
      this.#answer = ''
      return said.events
    }
    if (line.corral !== 'end') return this.#questions.ownLine(line)
    this.#exitCode = asCount(line.code)
    const message = asString(line.message)
    if (message === undefined) return []
    this.#failure = message
    return errorEvents(message)
  }

  #response(line: JsonObject): AgentEvent[] {
    const result = asObject(line.result)
    this.sessionId = asString(result?.sessionId) ?? this.sessionId
    const stopReason = asString(result?.stopReason)
    if (stopReason === undefined) return []
    this.#stopReason = clipText(stopReason, 100)
    const usage = asObject(result?.usage)
    if (!usage) return []
    return [
      {
        type: 'usage',
        scope: 'total',
        input_tokens: asCount(usage.inputTokens),
        output_tokens: asCount(usage.outputTokens),
        cache_read_tokens: asCount(usage.cachedReadTokens),
        cache_write_tokens: asCount(usage.cachedWriteTokens),
      },
    ]
  }

  #update(update: JsonObject): AgentEvent[] {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
      case 'agent_thought_chunk':
        return this.#speak(update.sessionUpdate, asString(asObject(update.content)?.text) ?? '')
      case 'tool_call':
      case 'tool_call_update':
        this.#answer = ''
        return [...this.#endSpeech(), ...this.#call(update)]
      default:
        // Modes, commands and counts of the context say nothing about the work.
        return []
    }
  }

  /** Answers come in pieces of a few words, which are joined to paragraphs. */
  #speak(kind: SpeechKind, piece: string): AgentEvent[] {
    if (kind === 'agent_message_chunk' && this.#answer.length < eventLimits.textCharacters) {
      this.#answer = clipText(`${this.#answer}${piece}`, eventLimits.textCharacters)
      this.finalText = this.#answer
    }
    const events = this.#speech && this.#speech.kind !== kind ? this.#endSpeech() : []
    const before = this.#speech?.text ?? ''
    // Without a line end there is no new paragraph: looking through all of the text for each letter would take its square.
    const paragraphs = piece.includes('\n') ? `${before}${piece}`.split('\n\n') : [`${before}${piece}`]
    const rest = paragraphs.pop() ?? ''
    this.#speech = { kind, text: rest }
    events.push(...paragraphs.flatMap((text) => this.#spoken(kind, text)))
    return rest.length < eventLimits.textCharacters ? events : [...events, ...this.#endSpeech()]
  }

  #endSpeech(): AgentEvent[] {
    const speech = this.#speech
    this.#speech = undefined
    return speech ? this.#spoken(speech.kind, speech.text) : []
  }

  #spoken(kind: SpeechKind, text: string): AgentEvent[] {
    return messageEvents(text, kind === 'agent_message_chunk' ? {} : { thinking: true })
  }

  #asked(line: JsonObject): AgentEvent[] {
    const questions = questionsOf(line)
    if (questions[0]) this.#questions.requested(questions[0].id, questions, this.lineCharacters)
    return []
  }

  /** A call is announced empty and filled in later: it is told when its arguments are there, or at its end. */
  #call(update: JsonObject): AgentEvent[] {
    const id = clipText(asString(update.toolCallId) ?? '', maxNameCharacters)
    const call = this.#calls.get(id) ?? { title: '', kind: '', paths: [], isTold: false }
    if (!this.#calls.has(id) && this.#calls.size < maxOpenCalls) this.#calls.set(id, call)
    call.title = clipText(asString(update.title) ?? call.title, maxNameCharacters)
    call.kind = clipText(asString(update.kind) ?? call.kind, maxNameCharacters)
    const input = asObject(update.rawInput) ?? {}
    const paths = changedPaths(update)
    if (paths.length > 0) call.paths = paths
    const isEnd = update.status === 'completed' || update.status === 'failed'
    const events: AgentEvent[] = []
    if (!call.isTold && (isEnd || Object.keys(input).length > 0)) {
      call.isTold = true
      events.push(toolCallEvent(id, call.title || call.kind, input))
    }
    if (!isEnd) return events
    this.#calls.delete(id)
    const isError = update.status === 'failed'
    events.push(toolResultEvent(id, { text: resultText(update), isError }))
    if (call.kind === 'edit' && !isError)
      events.push(...call.paths.flatMap((path) => fileChangedEvents(path, 'edited')))
    return events
  }
}

function changedPaths(update: JsonObject): string[] {
  const places = [
    ...asArray(update.locations),
    ...asArray(update.content).filter((part) => asObject(part)?.type === 'diff'),
  ]
  const paths = places.flatMap((place) => asString(asObject(place)?.path) ?? [])
  return [...new Set(paths)].filter((path) => path.length <= eventLimits.pathCharacters).slice(0, 100)
}

function resultText(update: JsonObject): string {
  const texts = asArray(update.content).flatMap((entry) => asString(asObject(asObject(entry)?.content)?.text) ?? [])
  if (texts.length > 0) return texts.join('\n')
  const raw = update.rawOutput
  return asString(raw) ?? asString(asObject(raw)?.output) ?? (raw === undefined ? '' : JSON.stringify(raw))
}
