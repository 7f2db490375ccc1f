/** Longest line we keep in memory; an API server refuses objects far below this. */
const maxLineBytes = 64 * 1024 * 1024
const newline = 10

/**
 * Values of a stream of JSON lines, split on bytes. Blank lines and the spaces some servers send to keep a connection
 * alive yield nothing. A line cut off by the end of the stream is dropped: the event comes again after a resume.
 */
export async function* jsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  let rest: Buffer[] = []
  let restBytes = 0
  for await (const chunk of chunks) {
    const buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk)
    let start = 0
    for (let end = buffer.indexOf(newline); end >= 0; end = buffer.indexOf(newline, start)) {
      const part = buffer.subarray(start, end)
      start = end + 1
      const line = rest.length === 0 ? part : Buffer.concat([...rest, part])
      rest = []
      restBytes = 0
      const text = line.toString('utf8')
      if (text.trim() !== '') yield JSON.parse(text)
    }
    if (start < buffer.length) {
      rest.push(buffer.subarray(start))
      restBytes += buffer.length - start
      if (restBytes > maxLineBytes) throw new RangeError(`a line of more than ${maxLineBytes} bytes`)
    }
  }
}
