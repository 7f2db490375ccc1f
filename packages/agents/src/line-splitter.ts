/** A piece of a line. `complete` is false where a line longer than the limit goes on in the next piece. */
export interface LinePiece {
  readonly text: string
  readonly complete: boolean
}

/**
 * Cuts a byte stream into lines of UTF-8 text, holding at most `maxCharacters` of an unfinished one. The pieces do not
 * depend on how the bytes were cut into chunks.
 */
export class LineSplitter {
  #decoder = new TextDecoder('utf-8')
  readonly #maxCharacters: number
  #pending = ''
  #isInsideSkippedLine = false

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters
  }

  /** The lines `chunk` completes, without their line ends. */
  push(chunk: Uint8Array): LinePiece[] {
    return this.#cut(this.#decoder.decode(chunk, { stream: true }))
  }

  /** The unfinished last line, if there is one. */
  end(): LinePiece[] {
    const pieces = this.#cut(this.#decoder.decode())
    if (this.#isInsideSkippedLine) this.#pending = ''
    if (this.#pending !== '') pieces.push({ text: withoutReturn(this.#pending), complete: true })
    this.#pending = ''
    return pieces
  }

  /** What follows does not continue what came before, and begins inside a line: that one is left out. */
  skip(): void {
    this.#decoder = new TextDecoder('utf-8')
    this.#pending = ''
    this.#isInsideSkippedLine = true
  }

  #cut(text: string): LinePiece[] {
    const pieces: LinePiece[] = []
    let start = 0
    if (this.#isInsideSkippedLine) {
      const end = text.indexOf('\n')
      if (end < 0) return pieces
      this.#isInsideSkippedLine = false
      start = end + 1
    }
    for (;;) {
      const newline = text.indexOf('\n', start)
      const end = newline < 0 ? text.length : newline
      // Filling up to the limit and no further makes the borders of pieces depend on the line alone.
      while (start < end) {
        const room = this.#maxCharacters - this.#pending.length
        if (room <= 0) {
          pieces.push({ text: this.#pending, complete: false })
          this.#pending = ''
          continue
        }
        const taken = text.slice(start, Math.min(end, start + room))
        this.#pending += taken
        start += taken.length
      }
      if (newline < 0) return pieces
      pieces.push({ text: withoutReturn(this.#pending), complete: true })
      this.#pending = ''
      start = newline + 1
    }
  }
}

const withoutReturn = (line: string): string => (line.endsWith('\r') ? line.slice(0, -1) : line)
