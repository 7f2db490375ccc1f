import type { AgentEvent } from '@corral/protocol'
import type { AgentExit, AgentQuestion, AgentVerdict } from '../../agent-adapter.js'
import { exitVerdict } from '../../exit-verdict.js'
import {
  contentText,
  errorEvents,
  fileChangedEvents,
  JsonLinesParser,
  messageEvents,
  modelFailure,
  noteEvents,
  toolCallEvent,
  toolResultEvent,
} from '../../json-lines-parser.js'
import { asArray, asCount, asObject, asString, type JsonObject } from '../../json-value.js'
import { noteRead, QuestionBook, readMessage } from '../../question-book.js'
import { execLineOf } from './app-server-lines.js'
import { questionsOf } from './codex-channel.js'

/** Reads what the program beside `codex app-server` prints, and the lines of `codex exec --json`. */
export class CodexParser extends JsonLinesParser {
  readonly #questions = new QuestionBook()
  readonly read: string[] = []
  #failure: string | undefined
  #isCompleted = false
  /** The app server tells the counts beside the turn and not with its end. */
  #usage: JsonObject | undefined

  constructor() {
    super('Codex')
  }

  get questions(): readonly AgentQuestion[] {
    return this.#questions.open
  }

  protected onLine(line: JsonObject): AgentEvent[] {
    if (line.corral !== undefined) return this.#ownLine(line)
    if (line.method === undefined) return this.#execLine(line)
    if (line.id !== undefined) return this.#asked(line)
    if (line.method === 'serverRequest/resolved') return this.#resolved(asObject(line.params) ?? {})
    const execLine = execLineOf(line)
    return execLine ? this.#execLine(execLine) : []
  }

  #ownLine(line: JsonObject): AgentEvent[] {
    if (line.corral === 'session') this.sessionId = asString(line.sessionId)
    const message = readMessage(line)
    if (message) {
      noteRead(this.read, message.id)
      return message.events
    }
    if (line.corral !== 'end') return this.#questions.ownLine(line)
    const failure = asString(line.message)
    if (failure === undefined) return []
    this.#failure ??= failure
    return errorEvents(failure)
  }

  #asked(line: JsonObject): AgentEvent[] {
    const questions = questionsOf(line)
    if (questions[0]) this.#questions.requested(questions[0].id, questions, this.lineCharacters)
    return []
  }

  #resolved({ requestId }: JsonObject): AgentEvent[] {
    return this.#questions.withdraw(({ id }) => id === String(requestId))
  }

  #execLine(line: JsonObject): AgentEvent[] {
    const item = asObject(line.item)
    switch (line.type) {
      case 'thread.started':
        this.sessionId = asString(line.thread_id)
        return []
      case 'item.started':
        return item ? started(item) : []
      case 'item.completed':
        if (item?.type === 'agent_message') return this.said(item.text)
        return item ? completed(item) : []
      case 'error':
        return errorEvents(line.message)
      case 'turn.completed':
        this.#isCompleted = true
        return usageEvents(asObject(line.usage) ?? this.#usage)
      case 'corral.usage':
        this.#usage = asObject(line.usage)
        return []
      case 'turn.failed':
        // The same text came as an error line just before.
        this.#failure = asString(asObject(line.error)?.message) ?? ''
        return []
      default:
        return []
    }
  }

  protected judge(exit: AgentExit): AgentVerdict {
    if (exit.exitCode === 127 && !this.#isCompleted)
      return { ok: false, cause: 'AgentNotInstalled', message: 'Codex is not installed in the sandbox' }
    if (this.#failure !== undefined && exit.signal === undefined)
      return modelFailure(this.#failure, statusIn(this.#failure))
    if (exit.exitCode === 0 && !this.#isCompleted)
      return { ok: false, cause: 'AgentFailed', message: 'Codex ended without completing its turn' }
    return exitVerdict(this.program, exit)
  }
}

function started(item: JsonObject): AgentEvent[] {
  switch (item.type) {
    case 'command_execution':
      return [toolCallEvent(item.id, 'shell', { command: asString(item.command) ?? '' })]
    case 'mcp_tool_call':
      return [toolCallEvent(item.id, `${asString(item.server)}.${asString(item.tool)}`, asObject(item.arguments) ?? {})]
    case 'collab_tool_call':
      return [toolCallEvent(item.id, asString(item.tool), { prompt: asString(item.prompt) ?? '' })]
    case 'web_search':
      return [toolCallEvent(item.id, 'web_search', { query: asString(item.query) ?? '' })]
    default:
      return []
  }
}

function completed(item: JsonObject): AgentEvent[] {
  switch (item.type) {
    case 'reasoning':
      return messageEvents(item.text, { thinking: true })
    case 'error':
      // A remark of the program, such as a model it has no figures for; what ends the run is `turn.failed`.
      return noteEvents(item.message)
    case 'command_execution':
      return [toolResultEvent(item.id, { text: asString(item.aggregated_output) ?? '', isError: item.exit_code !== 0 })]
    case 'mcp_tool_call':
      return [
        toolResultEvent(item.id, {
          text: contentText(asObject(item.result)?.content ?? asObject(item.error)?.message ?? ''),
          isError: item.status !== 'completed',
        }),
      ]
    case 'collab_tool_call':
    case 'web_search':
      return [toolResultEvent(item.id, { text: asString(item.status) ?? '', isError: item.status === 'failed' })]
    case 'file_change':
      return item.status === 'completed' ? asArray(item.changes).flatMap(changed) : []
    default:
      return []
  }
}

const changes = { add: 'written', update: 'edited', delete: 'deleted' } as const

function changed(entry: unknown): AgentEvent[] {
  const change = asObject(entry)
  const kind = asString(change?.kind) ?? ''
  return fileChangedEvents(
    change?.path,
    Object.hasOwn(changes, kind) ? changes[kind as keyof typeof changes] : 'edited',
  )
}

/** Codex counts cached tokens among the input; we count them apart. After a resume its counts include the earlier runs. */
function usageEvents(usage: JsonObject | undefined): AgentEvent[] {
  if (!usage) return []
  const cached = asCount(usage.cached_input_tokens)
  return [
    {
      type: 'usage',
      scope: 'total',
      input_tokens: Math.max(0, asCount(usage.input_tokens) - cached),
      output_tokens: asCount(usage.output_tokens),
      cache_read_tokens: cached,
      cache_write_tokens: asCount(usage.cache_write_input_tokens),
    },
  ]
}

/** Codex tells the model's HTTP status in words only. */
function statusIn(message: string): number | undefined {
  const found = /(?:unexpected status|last status:) (\d{3})\b/.exec(message)?.[1]
  return found === undefined ? undefined : Number(found)
}
