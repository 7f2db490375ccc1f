import { type AgentEvent, clipText } from '@corral/protocol'
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

const changingTools = { write: 'written', edit: 'edited' } as const

/** Reads the lines of `opencode run --format json`. There is no line that ends a run: the last step's reason tells. */
export class OpencodeParser extends JsonLinesParser {
  #lastStepReason: string | undefined
  #failure: { message: string; status: number | undefined } | undefined
  readonly #used = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }

  constructor() {
    super('OpenCode')
  }

  protected onLine(line: JsonObject): AgentEvent[] {
    const part = asObject(line.part)
    this.sessionId ??= asString(line.sessionID)
    switch (line.type) {
      case 'text':
        return this.said(part?.text)
      case 'reasoning':
        return messageEvents(part?.text, { thinking: true })
      case 'tool_use':
        return part ? toolEvents(part) : []
      case 'step_finish':
        this.#lastStepReason = clipText(asString(part?.reason) ?? '', 100) || undefined
        return this.#usage(asObject(part?.tokens))
      case 'error':
        return this.#error(asObject(line.error))
      default:
        return []
    }
  }

  protected judge(exit: AgentExit): AgentVerdict {
    if (this.#failure) return modelFailure(this.#failure.message, this.#failure.status)
    if (exit.exitCode === 127 && this.#lastStepReason === undefined)
      return { ok: false, cause: 'AgentNotInstalled', message: 'OpenCode is not installed in the sandbox' }
    // A refused tool call ends the run with exit code 0 after a step that wanted to go on.
    if (exit.exitCode === 0 && this.#lastStepReason !== 'stop') {
      const where =
        this.#lastStepReason === undefined ? 'without a step' : `after a step that ended with "${this.#lastStepReason}"`
      return { ok: false, cause: 'AgentFailed', message: `OpenCode ended ${where}` }
    }
    return exitVerdict(this.program, exit)
  }

  /** Steps tell their own tokens; the run's are their sum. */
  #usage(tokens: JsonObject | undefined): AgentEvent[] {
    if (!tokens) return []
    const cache = asObject(tokens.cache)
    const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = this.#used
    this.#used.input_tokens = sumOf(input_tokens, tokens.input)
    this.#used.output_tokens = sumOf(output_tokens, tokens.output, tokens.reasoning)
    this.#used.cache_read_tokens = sumOf(cache_read_tokens, cache?.read)
    this.#used.cache_write_tokens = sumOf(cache_write_tokens, cache?.write)
    return [{ type: 'usage', scope: 'total', ...this.#used }]
  }

  #error(error: JsonObject | undefined): AgentEvent[] {
    const data = asObject(error?.data)
    const message = asString(data?.message) ?? asString(error?.name) ?? 'OpenCode reported an error'
    const status = typeof data?.statusCode === 'number' ? data.statusCode : undefined
    this.#failure = { message, status }
    return errorEvents(message)
  }
}

/** Past this a number is no count any more, and no client reads an event with it. */
function sumOf(...counts: unknown[]): number {
  return counts.reduce<number>((sum, count) => Math.min(sum + asCount(count), Number.MAX_SAFE_INTEGER), 0)
}

/** A call is told once, when it is done, with its result. */
function toolEvents(part: JsonObject): AgentEvent[] {
  const state = asObject(part.state) ?? {}
  const input = asObject(state.input) ?? {}
  const tool = asString(part.tool) ?? ''
  const exit = asObject(state.metadata)?.exit
  const isError = state.status !== 'completed' || (typeof exit === 'number' && exit !== 0)
  const text = asString(state.status === 'completed' ? state.output : state.error) ?? ''
  const changed =
    !isError && Object.hasOwn(changingTools, tool)
      ? fileChangedEvents(input.filePath, changingTools[tool as keyof typeof changingTools])
      : []
  return [toolCallEvent(part.callID, tool, input), toolResultEvent(part.callID, { text, isError }), ...changed]
}
