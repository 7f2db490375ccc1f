import { type AgentEvent, eventLimits, type OutputStream } from '@corral/protocol'

/** Joined lines are at most this part of what came before them: short at first, so that people see each line at once. */
const joinedShare = 1 / 1024
/** One character is kept for the line end of an unfinished last line. */
const maxCharacters = eventLimits.outputCharacters - 1

/**
 * Makes output events of one stream: whole lines, joined where there are many. How many depends on how much the stream
 * has written so far and on nothing else, least of all on time or on how the bytes were cut into chunks: the same bytes
 * give the same events after a restart. At most a thousandth of the output, and never more than one event holds, waits
 * for the next line.
 */
export class OutputJoiner {
  readonly #stream: OutputStream
  #decoder = new TextDecoder('utf-8')
  #pending = ''
  #emitted = 0

  constructor(stream: OutputStream) {
    this.#stream = stream
  }

  push(chunk: Uint8Array): AgentEvent[] {
    return this.#cut(this.#decoder.decode(chunk, { stream: true }))
  }

  /** What is left, as a last line. */
  end(): AgentEvent[] {
    const events = this.#cut(this.#decoder.decode())
    const rest = this.#pending
    this.#pending = ''
    if (rest === '') return events
    return [...events, this.#event(rest.endsWith('\n') ? rest : `${withoutReturn(rest)}\n`)]
  }

  /** What follows does not continue what came before: so much came that the rest is joined as far as it goes. */
  skip(): AgentEvent[] {
    const events = this.end()
    this.#decoder = new TextDecoder('utf-8')
    this.#emitted = maxCharacters / joinedShare
    return events
  }

  #cut(text: string): AgentEvent[] {
    const all = this.#pending + text
    const events: AgentEvent[] = []
    let start = 0
    for (;;) {
      const length = this.#nextLength(all, start)
      if (length === 0) break
      events.push(this.#event(all.slice(start, start + length)))
      start += length
      this.#emitted += length
    }
    this.#pending = all.slice(start)
    return events
  }

  /** How much of `all` the next event takes; 0 while that depends on what is still to come. */
  #nextLength(all: string, start: number): number {
    const least = Math.min(maxCharacters, Math.floor(this.#emitted * joinedShare))
    const end = all.indexOf('\n', start + Math.max(0, least - 1)) - start
    if (end >= 0 && end < maxCharacters) return end + 1
    if (all.length - start < maxCharacters) return 0
    const lastLine = all.lastIndexOf('\n', start + maxCharacters - 1) - start
    if (lastLine >= 0) return lastLine + 1
    // A character outside the basic plane is two units, which stay together.
    const isHalf = /[\ud800-\udbff]/.test(all.charAt(start + maxCharacters - 1))
    return isHalf ? maxCharacters - 1 : maxCharacters
  }

  #event(text: string): AgentEvent {
    return { type: 'output', stream: this.#stream, text: text.includes('\r') ? text.replaceAll('\r\n', '\n') : text }
  }
}

const withoutReturn = (line: string): string => (line.endsWith('\r') ? line.slice(0, -1) : line)
