import { type AgentEvent, clipText, eventLimits } from '@corral/protocol'
import type { AgentExit, AgentQuestion, AgentVerdict } from '../../agent-adapter.js'
import { exitVerdict } from '../../exit-verdict.js'
import { contentText, JsonLinesParser, messageEvents, toolCallEvent, toolResultEvent } from '../../json-lines-parser.js'
import { asArray, asCount, asObject, asString, type JsonObject } from '../../json-value.js'
import { noteRead, QuestionBook, readMessage } from '../../question-book.js'
import { questionsOf } from './claude-channel.js'
import { changedPath } from './claude-tools.js'

const maxPendingCalls = 1_000

type Change = { path: string; change: 'written' | 'edited' }

/** Reads Claude Code's `stream-json` lines. */
export class ClaudeParser extends JsonLinesParser {
  /** Calls that will have changed a file if their result says so. */
  readonly #pendingChanges = new Map<string, Change>()
  readonly #questions = new QuestionBook()
  readonly read: string[] = []
  #result: JsonObject | undefined
  #model: string | undefined

  constructor() {
    super('Claude Code')
  }

  get questions(): readonly AgentQuestion[] {
    return this.#questions.open
  }

  protected onLine(line: JsonObject): AgentEvent[] {
    if (line.corral !== undefined) return this.#ownLine(line)
    switch (line.type) {
      case 'assistant':
        return this.#assistant(line)
      case 'user':
        return this.#toolResults(line)
      case 'system':
        return this.#system(line)
      case 'control_request':
        return this.#asked(line)
      case 'control_cancel_request':
        return this.#questions.withdraw(({ id }) => id === line.request_id)
      case 'result':
        return this.#finalResult(line)
      default:
        // Newer versions add kinds of lines; they carry nothing of ours.
        return []
    }
  }

  protected judge(exit: AgentExit): AgentVerdict {
    return claudeVerdict(this.#result, exit)
  }

  #asked(line: JsonObject): AgentEvent[] {
    const questions = questionsOf(line)
    if (questions[0]) this.#questions.requested(questions[0].id, questions, this.lineCharacters)
    return []
  }

  #ownLine(line: JsonObject): AgentEvent[] {
    const message = readMessage(line)
    if (!message) return this.#questions.ownLine(line)
    noteRead(this.read, message.id)
    return message.events
  }

  #assistant(line: JsonObject): AgentEvent[] {
    const message = asObject(line.message)
    return asArray(message?.content).flatMap((entry): AgentEvent[] => {
      const block = asObject(entry)
      if (block?.type === 'text') return this.said(block.text)
      if (block?.type === 'thinking') return messageEvents(block.thinking, { thinking: true })
      if (block?.type !== 'tool_use') return []
      const change = changedPath(block)
      if (change && this.#pendingChanges.size < maxPendingCalls) {
        this.#pendingChanges.set(asString(block.id) ?? '', change)
      }
      return [toolCallEvent(block.id, block.name, asObject(block.input) ?? {})]
    })
  }

  #toolResults(line: JsonObject): AgentEvent[] {
    return asArray(asObject(line.message)?.content).flatMap((entry): AgentEvent[] => {
      const block = asObject(entry)
      if (block?.type !== 'tool_result') return []
      const callId = asString(block.tool_use_id) ?? ''
      const isError = block.is_error === true
      const change = this.#pendingChanges.get(callId)
      this.#pendingChanges.delete(callId)
      // A question about a call that has its result is settled, also where the answer did not come from us.
      const settled = this.#questions.withdraw((question) => question.callId === callId)
      return [
        ...settled,
        toolResultEvent(callId, { text: contentText(block.content), isError }),
        ...(change && !isError ? [{ type: 'file_changed', ...change } as const] : []),
      ]
    })
  }

  #system(line: JsonObject): AgentEvent[] {
    if (line.subtype === 'init') {
      this.#model = asString(line.model)
      this.sessionId = asString(line.session_id) ?? this.sessionId
    }
    if (line.subtype !== 'api_retry') return []
    const status = typeof line.error_status === 'number' ? ` with ${line.error_status}` : ''
    const attempt = `attempt ${asCount(line.attempt)} of ${asCount(line.max_retries)}`
    return [{ type: 'error', message: `the model answered${status}, trying again (${attempt})` }]
  }

  #finalResult(line: JsonObject): AgentEvent[] {
    this.#result = line
    const text = asString(line.result)
    if (text !== undefined) this.finalText = clipText(text, eventLimits.textCharacters)
    const events: AgentEvent[] = []
    const usage = asObject(line.usage)
    if (usage) {
      const counted = {
        input_tokens: asCount(usage.input_tokens),
        output_tokens: asCount(usage.output_tokens),
        cache_read_tokens: asCount(usage.cache_read_input_tokens),
        cache_write_tokens: asCount(usage.cache_creation_input_tokens),
      }
      const model = mainModel(line) ?? this.#model
      events.push({
        type: 'usage',
        scope: 'total',
        ...counted,
        ...(model === undefined ? {} : { model: clipText(model, 200) }),
      })
    }
    if (line.is_error === true) events.push({ type: 'error', message: failureText(line) })
    return events
  }
}

/** `is_error` decides, whatever the subtype says; a run without a result line is judged by its exit alone. */
function claudeVerdict(result: JsonObject | undefined, exit: AgentExit): AgentVerdict {
  if (result?.is_error === true) {
    const status = typeof result.api_error_status === 'number' ? result.api_error_status : undefined
    if (status === undefined) return { ok: false, cause: 'AgentFailed', message: failureText(result) }
    const cause = status === 429 || status >= 500 ? 'ModelUnavailable' : 'ModelRefused'
    return { ok: false, cause, message: failureText(result) }
  }
  if (exit.exitCode === 127 && !result) {
    return { ok: false, cause: 'AgentNotInstalled', message: 'Claude Code is not installed in the sandbox' }
  }
  if (exit.exitCode === 0 && !result) {
    return { ok: false, cause: 'AgentFailed', message: 'Claude Code ended without a result' }
  }
  return exitVerdict('Claude Code', exit)
}

function failureText(result: JsonObject): string {
  const text =
    asString(result.result) ??
    asArray(result.errors)
      .map((error) => (typeof error === 'object' ? '' : String(error)))
      .filter(Boolean)
      .join('; ')
  return clipText(text === '' ? 'Claude Code ended with an error' : text, eventLimits.summaryCharacters)
}

/** The model that wrote most; helpers on smaller models are part of the sum but do not name it. */
function mainModel(result: JsonObject): string | undefined {
  const models = Object.entries(asObject(result.modelUsage) ?? {})
  models.sort(([, a], [, b]) => asCount(asObject(b)?.outputTokens) - asCount(asObject(a)?.outputTokens))
  return models[0]?.[0]
}
