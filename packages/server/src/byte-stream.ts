/**
 * An answer whose bytes come as they are asked for; a client that goes away ends their source. A sandbox wrote them: no browser
 * may take them for something else than they are said to be.
 */
export function byteStream(chunks: AsyncIterable<Uint8Array>, headers: Record<string, string>): Response {
  const iterator = chunks[Symbol.asyncIterator]()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await iterator.next()
      if (next.done) controller.close()
      else controller.enqueue(next.value)
    },
    async cancel() {
      await iterator.return?.()
    },
  })
  return new Response(body, { headers: { 'x-content-type-options': 'nosniff', ...headers } })
}
