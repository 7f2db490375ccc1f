const newline = 10

/** Cuts a byte stream into lines. `rest` is what followed the last line taken, for streams that change their protocol. */
export class LineReader {
  #rest: Buffer = Buffer.alloc(0)
  constructor(private readonly limitBytes: number = 8 * 1024 * 1024) {}

  *take(chunk: Buffer): Generator<string> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    for (let end = this.#rest.indexOf(newline); end >= 0; end = this.#rest.indexOf(newline)) {
      const line = this.#rest.toString('utf8', 0, end)
      this.#rest = this.#rest.subarray(end + 1)
      yield line
    }
    if (this.#rest.length > this.limitBytes) throw new RangeError(`a line of more than ${this.limitBytes} bytes`)
  }

  rest(): Buffer {
    const rest = this.#rest
    this.#rest = Buffer.alloc(0)
    return rest
  }
}
