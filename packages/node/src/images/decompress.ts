import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { ImageError } from './image-error.js'

/** The stream, cut off with `TooLarge` once `budget` is used up: a compressed archive may say little at great length. */
export async function* bounded(
  stream: AsyncIterable<Uint8Array>,
  budget: { leftBytes: number },
): AsyncGenerator<Uint8Array> {
  for await (const part of stream) {
    budget.leftBytes -= part.length
    if (budget.leftBytes < 0) throw new ImageError('TooLarge', 'the archive unpacks to more than an image may take')
    yield part
  }
}

/** The bytes of a stream, decompressed where they begin as gzip does. Other compressions are `Unsupported`. */
export async function* plainBytes(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = stream[Symbol.asyncIterator]()
  let first = Buffer.alloc(0)
  while (first.length < 4) {
    const { value, done } = await source.next()
    if (done) break
    first = Buffer.concat([first, value])
  }
  const all = (async function* () {
    if (first.length > 0) yield first
    for (;;) {
      const { value, done } = await source.next()
      if (done) return
      yield value
    }
  })()
  const begin = first.subarray(0, 4).toString('hex')
  if (begin === '28b52ffd' || begin === 'fd377a58' || begin.startsWith('425a68'))
    throw new ImageError('Unsupported', 'compressed in another way than gzip; unpack it first, or export it with gzip')
  if (!begin.startsWith('1f8b')) {
    yield* all
    return
  }
  const gunzip = createGunzip()
  const input = Readable.from(all)
  input.on('error', (error) => gunzip.destroy(error))
  input.pipe(gunzip)
  try {
    yield* gunzip
  } catch (error) {
    if (error instanceof ImageError) throw error
    throw new ImageError('InvalidArchive', 'the compressed data is damaged', { cause: error })
  } finally {
    input.destroy()
    gunzip.destroy()
  }
}
