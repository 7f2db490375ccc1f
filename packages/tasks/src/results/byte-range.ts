/** A part of a stream of bytes, in bytes from its beginning. */
export interface ByteRange {
  offset?: number | undefined
  limit?: number | undefined
}

/** The bytes of a range; reads no further than its end. */
export async function* byteRange(
  chunks: AsyncIterable<Uint8Array>,
  { offset = 0, limit = Number.POSITIVE_INFINITY }: ByteRange,
): AsyncGenerator<Uint8Array> {
  let at = 0
  const end = offset + limit
  if (limit <= 0) return
  for await (const chunk of chunks) {
    const part = chunk.subarray(Math.max(0, offset - at), Math.max(0, end - at))
    at += chunk.length
    if (part.length > 0) yield part
    if (at >= end) return
  }
}
