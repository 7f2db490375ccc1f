import { CorralError } from './corral-error.js'

const maxLineCharacters = 16 * 1024 * 1024

/** The lines of a streamed answer, without their ends; `onBytes` is called for every piece that arrives. */
export async function* readLines(
  response: Response,
  onBytes: () => void = () => undefined,
): AsyncGenerator<string, void> {
  const reader = response.body?.getReader()
  if (!reader) return
  const decoder = new TextDecoder()
  let pending = ''
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      onBytes()
      const lines = decoder.decode(next.value, { stream: true }).split('\n')
      lines[0] = pending + lines[0]
      pending = lines.pop() ?? ''
      if (pending.length > maxLineCharacters)
        throw new CorralError('ProtocolViolation', `a line has more than ${maxLineCharacters} characters`)
      yield* lines
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
