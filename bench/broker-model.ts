import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monotonicMs } from './broker-clock.js'
import { serveWorker } from './common/worker.js'

// A model in a process of its own: `?events=50&every=20` asks for that many events, so many milliseconds apart.
const server = createServer((request, response) => {
  const query = new URL(request.url ?? '/', 'http://model').searchParams
  request.resume()
  request.once('end', () => speak(response, Number(query.get('events')), Number(query.get('every'))))
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
await serveWorker({ port: (server.address() as AddressInfo).port }, async () => {
  server.closeAllConnections()
  server.close()
})

const padding = 'x'.repeat(200)

/** The last event says how many bytes the answer has, itself included. */
function speak(response: ServerResponse, events: number, everyMs: number): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let sent = 0
  let size = 0
  const next = (): void => {
    const text = `data: ${JSON.stringify({ type: 'content_block_delta', at: monotonicMs(), delta: { text: padding } })}\n\n`
    size += text.length
    response.write(text)
    sent += 1
    if (sent < events) return void setTimeout(next, everyMs)
    const last = (total: string): string => `data: {"type":"message_stop","total":${total}}\n\n`
    const total = size + last('00000000').length
    response.end(last(String(total).padStart(8, ' ')))
  }
  next()
}
