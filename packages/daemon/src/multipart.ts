import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { CorralError } from '@corral/protocol'

export interface FilePart {
  readonly name: string
  readonly filename: string | undefined
  readonly chunks: AsyncIterable<Uint8Array>
}

/** The files of a multipart body, one after the other as they arrive. The parser is loaded when the first one comes. */
export async function* fileParts(request: IncomingMessage): AsyncGenerator<FilePart> {
  const { Busboy } = await import('@fastify/busboy')
  const type = request.headers['content-type']
  if (!type?.startsWith('multipart/form-data')) {
    throw new CorralError('BadRequest', 'the body is not multipart/form-data')
  }
  const waiting: FilePart[] = []
  let wake = () => {}
  let isDone = false
  let failure: unknown
  const finish = (error?: unknown) => {
    failure ??= error
    isDone = true
    wake()
  }
  const parser = new Busboy({ headers: { ...request.headers, 'content-type': type }, preservePath: true })
  parser.on('file', (name: string, stream: Readable, filename: string | undefined) => {
    waiting.push({ name, filename, chunks: stream })
    wake()
  })
  parser.once('finish', () => finish())
  parser.once('error', (error) => finish(new CorralError('BadRequest', `the body cannot be read: ${String(error)}`)))
  request.once('error', finish)
  request.once('aborted', () => finish(new CorralError('Aborted', 'the client went away')))
  request.pipe(parser)
  try {
    for (;;) {
      const part = waiting.shift()
      if (part) yield part
      else if (failure) throw failure
      else if (isDone) return
      else {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  } finally {
    request.unpipe(parser)
    request.resume()
  }
}
