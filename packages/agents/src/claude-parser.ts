import { type AgentEvent, clipText, eventLimits, type OutputStream } from '@corral/protocol'
import type { AgentExit, AgentParser, AgentVerdict } from './agent-adapter.js'
import { changedPath, toolCallEvent } from './claude-tools.js'
import { outputEvent } from './command-agent.js'
import { exitVerdict } from './exit-verdict.js'
import { asArray, asCount, asObject, asString, type JsonObject, parseJsonObject } from './json-value.js'
import { type LinePiece, LineSplitter } from './line-splitter.js'
import { costOf } from './model-prices.js'

/** A line holds a whole tool result; what is longer than this is not worth its memory. */
const maxLineCharacters = 4 * 1024 * 1024
const maxPendingCalls = 1_000

type Change = { path: string; change: 'written' | 'edited' }

/** Reads Claude Code's `stream-json` lines. A line that is not one of them is shown as plain output. */
export class ClaudeParser implements AgentParser {
  readonly #stdout = new LineSplitter(maxLineCharacters)
  readonly #stderr = new LineSplitter(eventLimits.outputCharacters - 1)
  /** Calls that will have changed a file if their result says so. */
  readonly #pendingChanges = new Map<string, Change>()
  #result: JsonObject | undefined
  #model: string | undefined
  #isInsideLongLine = false
  verdict: AgentVerdict = { ok: false, cause: 'AgentFailed', message: 'Claude Code has not ended' }

  push(chunk: Uint8Array, stream: OutputStream): AgentEvent[] {
    if (stream === 'stderr') return this.#stderr.push(chunk).map((piece) => outputEvent(piece, 'stderr'))
    return this.#stdout.push(chunk).flatMap((piece) => this.#line(piece))
  }

  end(exit: AgentExit): AgentEvent[] {
    const events = [
      ...this.#stdout.end().flatMap((piece) => this.#line(piece)),
      ...this.#stderr.end().map((piece) => outputEvent(piece, 'stderr')),
    ]
    this.verdict = claudeVerdict(this.#result, exit)
    return events
  }

  #line(piece: LinePiece): AgentEvent[] {
    if (!piece.complete || this.#isInsideLongLine) {
      const isFirst = !this.#isInsideLongLine
      this.#isInsideLongLine = !piece.complete
      return isFirst ? [{ type: 'error', message: 'a line of the agent was too long and is left out' }] : []
    }
    if (piece.text.trim() === '') return []
    const line = parseJsonObject(piece.text)
    if (!line) return plainOutput(piece.text)
    switch (line.type) {
      case 'assistant':
        return this.#assistant(line)
      case 'user':
        return this.#toolResults(line)
      case 'system':
        return this.#system(line)
      case 'result':
        return this.#finalResult(line)
      default:
        // Newer versions add kinds of lines; they carry nothing of ours.
        return []
    }
  }

  #assistant(line: JsonObject): AgentEvent[] {
    const message = asObject(line.message)
    return asArray(message?.content).flatMap((entry): AgentEvent[] => {
      const block = asObject(entry)
      if (block?.type === 'text') return messageEvent(block.text, false)
      if (block?.type === 'thinking') return messageEvent(block.thinking, true)
      if (block?.type !== 'tool_use') return []
      const change = changedPath(block)
      if (change && this.#pendingChanges.size < maxPendingCalls) {
        this.#pendingChanges.set(asString(block.id) ?? '', change)
      }
      return [toolCallEvent(block)]
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
      return [
        {
          type: 'tool_result',
          call_id: clipText(callId, 200),
          is_error: isError,
          text: clipText(resultText(block.content), eventLimits.textCharacters),
        },
        ...(change && !isError ? [{ type: 'file_changed', ...change } as const] : []),
      ]
    })
  }

  #system(line: JsonObject): AgentEvent[] {
    if (line.subtype === 'init') this.#model = asString(line.model)
    if (line.subtype !== 'api_retry') return []
    const status = typeof line.error_status === 'number' ? ` with ${line.error_status}` : ''
    const attempt = `attempt ${asCount(line.attempt)} of ${asCount(line.max_retries)}`
    return [{ type: 'error', message: `the model answered${status}, trying again (${attempt})` }]
  }

  #finalResult(line: JsonObject): AgentEvent[] {
    this.#result = line
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
      const cost = model === undefined ? undefined : costOf(counted, model)
      events.push({
        type: 'usage',
        scope: 'total',
        ...counted,
        ...(model === undefined ? {} : { model: clipText(model, 200) }),
        ...(cost === undefined ? {} : { cost_usd: cost }),
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

function messageEvent(text: unknown, thinking: boolean): AgentEvent[] {
  const clipped = clipText(asString(text) ?? '', eventLimits.textCharacters)
  if (clipped === '') return []
  return [{ type: 'message', role: 'assistant', text: clipped, ...(thinking ? { thinking } : {}) }]
}

function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  return asArray(content)
    .map((entry) => {
      const block = asObject(entry)
      return block?.type === 'text' ? (asString(block.text) ?? '') : `[${asString(block?.type) ?? 'content'}]`
    })
    .join('\n')
}

function failureText(result: JsonObject): string {
  const text = asString(result.result) ?? asArray(result.errors).map(String).join('; ')
  return clipText(text === '' ? 'Claude Code ended with an error' : text, eventLimits.summaryCharacters)
}

/** The model that wrote most; helpers on smaller models are part of the sum but do not name it. */
function mainModel(result: JsonObject): string | undefined {
  const models = Object.entries(asObject(result.modelUsage) ?? {})
  models.sort(([, a], [, b]) => asCount(asObject(b)?.outputTokens) - asCount(asObject(a)?.outputTokens))
  return models[0]?.[0]
}

function plainOutput(text: string): AgentEvent[] {
  return [{ type: 'output', stream: 'stdout', text: `${clipText(text, eventLimits.outputCharacters - 1)}\n` }]
}
