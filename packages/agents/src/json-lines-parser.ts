import { type AgentEvent, clipText, eventLimits, type OutputStream } from '@corral/protocol'
import type { AgentExit, AgentParser, AgentVerdict } from './agent-adapter.js'
import { asArray, asObject, asString, type JsonObject, parseJsonObject } from './json-value.js'
import { type LinePiece, LineSplitter } from './line-splitter.js'
import { OutputJoiner } from './output-joiner.js'

/** A line holds a whole tool result; what is longer than this is not worth its memory. */
const maxLineCharacters = 4 * 1024 * 1024

/**
 * A line that begins like JSON and is none takes ten microseconds, fifty times what others take: a megabyte of them would hold
 * up every other task for seconds. After so many of them the rest of the output is shown as text and not read.
 */
const maxBrokenLines = 5_000

/**
 * Reads agents that print one JSON object per line on standard output. A line that is no JSON object is shown as plain output, and
 * standard error always is. Subclasses say what their lines mean and what a finished run amounts to.
 */
export abstract class JsonLinesParser implements AgentParser {
  readonly #stdout = new LineSplitter(maxLineCharacters)
  readonly #stderr = new OutputJoiner('stderr')
  #isInsideLongLine = false
  #brokenLines = 0
  /** Takes standard output over when the agent has printed too many broken lines. */
  #plain: OutputJoiner | undefined
  /** Length of the line that is being read. */
  protected lineCharacters = 0
  verdict: AgentVerdict
  sessionId: string | undefined
  finalText: string | undefined

  constructor(protected readonly program: string) {
    this.verdict = { ok: false, cause: 'AgentFailed', message: `${program} has not ended` }
  }

  /** The events of one line. Lines of unknown kinds give none: newer versions of an agent add some. */
  protected abstract onLine(line: JsonObject): AgentEvent[]
  protected abstract judge(exit: AgentExit): AgentVerdict
  /** Events of what an agent that died in the middle left unfinished. */
  protected onEnd(): AgentEvent[] {
    return []
  }

  /** Something the agent said to its user; the last one is its final text. */
  protected said(text: unknown): AgentEvent[] {
    const events = messageEvents(text)
    if (events[0]?.type === 'message') this.finalText = events[0].text
    return events
  }

  push(chunk: Uint8Array, stream: OutputStream): AgentEvent[] {
    if (stream === 'stderr') return this.#stderr.push(chunk)
    return this.#onPieces(this.#stdout.push(chunk))
  }

  end(exit: AgentExit): AgentEvent[] {
    const events = [
      ...this.#onPieces(this.#stdout.end()),
      ...this.onEnd(),
      ...(this.#plain?.end() ?? []),
      ...this.#stderr.end(),
    ]
    this.verdict = this.judge(exit)
    return events
  }

  skip(): AgentEvent[] {
    this.#stdout.skip()
    this.#isInsideLongLine = false
    return [...(this.#plain?.skip() ?? []), ...this.#stderr.skip()]
  }

  #onPieces(pieces: readonly LinePiece[]): AgentEvent[] {
    const events: AgentEvent[] = []
    let plain = ''
    for (const piece of pieces) {
      if (this.#plain) plain += piece.complete ? `${piece.text}\n` : piece.text
      else events.push(...this.#onPiece(piece))
    }
    return this.#plain && plain !== '' ? [...events, ...this.#plain.push(Buffer.from(plain))] : events
  }

  #onPiece(piece: LinePiece): AgentEvent[] {
    if (!piece.complete || this.#isInsideLongLine) {
      const isFirst = !this.#isInsideLongLine
      this.#isInsideLongLine = !piece.complete
      return isFirst ? [{ type: 'error', message: 'a line of the agent was too long and is left out' }] : []
    }
    if (piece.text.trim() === '') return []
    const line = parseJsonObject(piece.text)
    this.lineCharacters = piece.text.length
    if (line) return this.#read(line)
    if (piece.text.startsWith('{')) this.#brokenLines += 1
    if (this.#brokenLines > maxBrokenLines) return this.#giveUp()
    return [{ type: 'output', stream: 'stdout', text: `${clipText(piece.text, eventLimits.outputCharacters - 1)}\n` }]
  }

  /** A line that the parser cannot read is left out: an error here would fail the step, and again each time it is repeated. */
  #read(line: JsonObject): AgentEvent[] {
    try {
      return this.onLine(line)
    } catch {
      // Such as values nested deeper than the stack.
      return [{ type: 'error', message: 'a line of the agent could not be read and is left out' }]
    }
  }

  #giveUp(): AgentEvent[] {
    this.#plain = new OutputJoiner('stdout')
    const message = `${this.program} printed more than ${maxBrokenLines} lines of broken JSON: the rest is shown as text`
    return [{ type: 'error', message }]
  }
}

/** What the agent said or thought; no event for an empty text. */
export function messageEvents(text: unknown, options: { thinking?: boolean } = {}): AgentEvent[] {
  const clipped = clipText(asString(text) ?? '', eventLimits.textCharacters)
  if (clipped === '') return []
  return [{ type: 'message', role: 'assistant', text: clipped, ...(options.thinking ? { thinking: true } : {}) }]
}

/** A note of the agent's program itself, not of the model. */
export function noteEvents(text: unknown): AgentEvent[] {
  const clipped = clipText(asString(text) ?? '', eventLimits.textCharacters)
  return clipped === '' ? [] : [{ type: 'message', role: 'system', text: clipped }]
}

export function errorEvents(text: unknown): AgentEvent[] {
  const clipped = clipText(asString(text) ?? '', eventLimits.textCharacters)
  return clipped === '' ? [] : [{ type: 'error', message: clipped }]
}

/** The argument that tells a person what a call is about, by preference. */
const tellingArguments = [
  'command',
  'file_path',
  'filePath',
  'notebook_path',
  'path',
  'pattern',
  'query',
  'url',
  'description',
  'prompt',
]

export function toolCallEvent(callId: unknown, tool: unknown, input: JsonObject): AgentEvent {
  const telling = tellingArguments.map((name) => asString(input[name])).find((value) => value !== undefined)
  return {
    type: 'tool_call',
    call_id: clipText(asString(callId) ?? '', 200),
    tool: clipText(asString(tool) ?? 'unknown', 200),
    summary: clipText(telling?.split('\n', 1)[0] ?? '', eventLimits.summaryCharacters),
    input: clipText(JSON.stringify(input), eventLimits.textCharacters),
  }
}

export function toolResultEvent(callId: unknown, result: { text: string; isError: boolean }): AgentEvent {
  return {
    type: 'tool_result',
    call_id: clipText(asString(callId) ?? '', 200),
    is_error: result.isError,
    text: clipText(result.text, eventLimits.textCharacters),
  }
}

export function fileChangedEvents(path: unknown, change: 'written' | 'edited' | 'deleted'): AgentEvent[] {
  const name = asString(path)
  if (name === undefined || name === '' || name.length > eventLimits.pathCharacters) return []
  return [{ type: 'file_changed', path: name, change }]
}

/** Text of MCP-like content: a string, or blocks of which the texts are joined and the others named. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return asArray(content)
    .map((entry) => {
      const block = asObject(entry)
      return block?.type === 'text' ? (asString(block.text) ?? '') : `[${asString(block?.type) ?? 'content'}]`
    })
    .join('\n')
}

/** What a failed call of the model amounts to: trying again later may help with 429 and 5xx, never with the others. */
export function modelFailure(message: string, httpStatus: number | undefined): AgentVerdict {
  const text = clipText(message === '' ? 'the agent ended with an error' : message, eventLimits.summaryCharacters)
  if (httpStatus === undefined) return { ok: false, cause: 'AgentFailed', message: text }
  const isAway = httpStatus === 429 || httpStatus >= 500
  return { ok: false, cause: isAway ? 'ModelUnavailable' : 'ModelRefused', message: text }
}
