import type { TaskEvent } from '@corral/protocol'

export type EventFormat = 'sse' | 'ndjson'

export function eventFormat(accept: string | undefined): EventFormat {
  return accept?.includes('text/event-stream') ? 'sse' : 'ndjson'
}

export const eventContentType: Record<EventFormat, string> = {
  sse: 'text/event-stream; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
}

const heartbeatMs = 15_000

/**
 * Events as a body: server-sent events whose id is the sequence, so a browser resumes by itself, or one JSON document
 * a line. A quiet stream carries a comment (SSE) or an empty line (NDJSON) every 15 s. The reader sets the pace.
 */
export function eventBody(
  events: AsyncIterable<TaskEvent>,
  format: EventFormat,
  abort: AbortController,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const iterator = events[Symbol.asyncIterator]()
  let pending: Promise<IteratorResult<TaskEvent>> | undefined
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      pending ??= iterator.next()
      let timer: NodeJS.Timeout | undefined
      const beat = new Promise<'beat'>((resolve) => {
        timer = setTimeout(() => resolve('beat'), heartbeatMs)
      })
      try {
        const next = await Promise.race([pending, beat])
        if (next === 'beat') return controller.enqueue(encoder.encode(format === 'sse' ? ': still here\n\n' : '\n'))
        pending = undefined
        if (next.done) return controller.close()
        controller.enqueue(encoder.encode(render(next.value, format)))
      } catch (error) {
        controller.error(error)
      } finally {
        clearTimeout(timer)
      }
    },
    async cancel() {
      abort.abort()
      await iterator.return?.()
    },
  })
}

function render(event: TaskEvent, format: EventFormat): string {
  const json = JSON.stringify(event)
  return format === 'sse' ? `id: ${event.sequence}\nevent: ${event.type}\ndata: ${json}\n\n` : `${json}\n`
}
