import { type AgentEvent, clipText, eventLimits } from '@corral/protocol'
import type { AgentExit, AgentVerdict } from '../../agent-adapter.js'
import { exitVerdict } from '../../exit-verdict.js'
import {
  errorEvents,
  fileChangedEvents,
  JsonLinesParser,
  messageEvents,
  modelFailure,
  toolCallEvent,
  toolResultEvent,
} from '../../json-lines-parser.js'
import { asCount, asObject, asString, type JsonObject } from '../../json-value.js'

const maxPendingCalls = 1_000
const changingTools = { write_file: 'written', replace: 'edited' } as const
type ChangingTool = keyof typeof changingTools

/** Reads Gemini CLI's `stream-json` lines. An answer comes in pieces of a few words (`delta`), which are joined to paragraphs. */
export class GeminiParser extends JsonLinesParser {
  /** Calls that will have changed a file if their result says so. */
  readonly #pendingChanges = new Map<string, { path: string; tool: ChangingTool }>()
  #paragraph = ''
  #isAnswering = false
  #model: string | undefined
  #result: JsonObject | undefined

  constructor() {
    super('Gemini CLI')
  }

  protected onLine(line: JsonObject): AgentEvent[] {
    // The prompt comes back as a message of the user: the task shows it already.
    if (line.type === 'message') return line.role === 'assistant' ? this.#answer(asString(line.content) ?? '') : []
    this.#isAnswering = false
    return [...this.#endParagraph(), ...this.#otherLine(line)]
  }

  #otherLine(line: JsonObject): AgentEvent[] {
    switch (line.type) {
      case 'init':
        this.#model = asString(line.model)
        this.sessionId = asString(line.session_id)
        return []
      case 'tool_use':
        return this.#toolUse(line)
      case 'tool_result':
        return this.#toolResult(line)
      case 'error':
        return errorEvents(line.message)
      case 'result':
        return this.#finalResult(line)
      default:
        return []
    }
  }

  /** Ended by a signal Gemini exits with 0 and without a result line, so that the line decides and not the code. */
  protected judge(exit: AgentExit): AgentVerdict {
    if (this.#result?.status === 'success') return exitVerdict(this.program, exit)
    if (this.#result) {
      const message = failureText(this.#result)
      return modelFailure(message, statusIn(message))
    }
    if (exit.exitCode === 127)
      return { ok: false, cause: 'AgentNotInstalled', message: 'Gemini CLI is not installed in the sandbox' }
    if (exit.exitCode === 0) return { ok: false, cause: 'AgentFailed', message: 'Gemini CLI ended without a result' }
    return exitVerdict(this.program, exit)
  }

  protected override onEnd(): AgentEvent[] {
    return this.#endParagraph()
  }

  #answer(piece: string): AgentEvent[] {
    const before = this.#isAnswering ? (this.finalText ?? '') : ''
    if (before.length < eventLimits.textCharacters)
      this.finalText = clipText(`${before}${piece}`, eventLimits.textCharacters)
    this.#isAnswering = true
    const text = `${this.#paragraph}${piece}`
    // Without a line end there is no new paragraph: looking through all of the text for each letter would take its square.
    const paragraphs = piece.includes('\n') ? text.split('\n\n') : [text]
    this.#paragraph = paragraphs.pop() ?? ''
    if (this.#paragraph.length < eventLimits.textCharacters) return paragraphs.flatMap((text) => messageEvents(text))
    return [...paragraphs.flatMap((text) => messageEvents(text)), ...this.#endParagraph()]
  }

  #endParagraph(): AgentEvent[] {
    const text = this.#paragraph
    this.#paragraph = ''
    return messageEvents(text)
  }

  #toolUse(line: JsonObject): AgentEvent[] {
    const input = asObject(line.parameters) ?? {}
    const tool = asString(line.tool_name) ?? ''
    const path = asString(input.file_path)
    const isChange =
      path !== undefined && path.length <= eventLimits.pathCharacters && Object.hasOwn(changingTools, tool)
    if (isChange && this.#pendingChanges.size < maxPendingCalls)
      this.#pendingChanges.set(asString(line.tool_id) ?? '', { path, tool: tool as ChangingTool })
    return [toolCallEvent(line.tool_id, tool, input)]
  }

  #toolResult(line: JsonObject): AgentEvent[] {
    const callId = asString(line.tool_id) ?? ''
    const isError = line.status !== 'success'
    const change = this.#pendingChanges.get(callId)
    this.#pendingChanges.delete(callId)
    return [
      toolResultEvent(callId, { text: asString(line.output) ?? '', isError }),
      ...(change && !isError ? fileChangedEvents(change.path, changingTools[change.tool]) : []),
    ]
  }

  #finalResult(line: JsonObject): AgentEvent[] {
    this.#result = line
    const stats = asObject(line.stats)
    const events: AgentEvent[] = stats
      ? [
          {
            type: 'usage',
            scope: 'total',
            input_tokens: asCount(stats.input),
            output_tokens: asCount(stats.output_tokens),
            cache_read_tokens: asCount(stats.cached),
            cache_write_tokens: 0,
            ...(this.#model === undefined ? {} : { model: clipText(this.#model, 200) }),
          },
        ]
      : []
    return line.status === 'success' ? events : [...events, ...errorEvents(failureText(line))]
  }
}

function failureText(result: JsonObject): string {
  return asString(asObject(result.error)?.message) ?? 'Gemini CLI ended with an error'
}

/** The API's own error lies as JSON inside the message. */
function statusIn(message: string): number | undefined {
  const found = /"code":\s*(\d{3})\b/.exec(message)?.[1]
  return found === undefined ? undefined : Number(found)
}
