import type { ConnectionCheck } from '@corral/protocol'

/** Results one JSON document a line, as they come. When the client closes the connection, the remaining checks are not run. */
export function streamedChecks(
  gone: AbortSignal,
  look: (signal: AbortSignal) => AsyncIterable<ConnectionCheck> | Promise<AsyncIterable<ConnectionCheck>>,
): Promise<never> {
  const abort = new AbortController()
  const looking = Promise.resolve(look(AbortSignal.any([abort.signal, gone])))
  return looking.then((found) => {
    const results = found[Symbol.asyncIterator]()
    const encoder = new TextEncoder()
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const next = await results.next()
        if (next.done) controller.close()
        else controller.enqueue(encoder.encode(`${JSON.stringify(next.value)}\n`))
      },
      async cancel() {
        abort.abort()
        await results.return?.()
      },
    })
    const headers = { 'content-type': 'application/x-ndjson; charset=utf-8', 'cache-control': 'no-cache' }
    return new Response(body, { headers }) as never // a streamed answer has no type in the route table
  })
}
