import { ByteQueue, type ByteStream } from '@corral/ports'
import { expect, it } from 'vitest'
import { streamFetch } from './stream-fetch.js'

it('an upload sends each piece of its body as one message of the tunnel', async () => {
  const answer = new ByteQueue()
  const messages: Buffer[] = []
  const tunnel: ByteStream = {
    [Symbol.asyncIterator]: () => answer[Symbol.asyncIterator](),
    async write(chunk) {
      messages.push(Buffer.from(chunk))
      if (Buffer.concat(messages).toString('latin1').endsWith('0\r\n\r\n'))
        answer.push(Buffer.from('HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n'))
    },
    end: () => answer.end(),
    destroy: () => answer.end(),
  }
  const lines = streamFetch(async () => tunnel)
  const pieces = 8
  let given = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (given === pieces) return controller.close()
      given += 1
      controller.enqueue(new Uint8Array(64 * 1024).fill(120))
    },
  })

  const response = await lines.fetch('http://sandbox/v1/files/large', { method: 'PUT', body })

  expect(response.status).toBe(201)
  const sent = Buffer.concat(messages).toString('latin1')
  expect(sent.split('\r\n').filter((line) => line.length === 64 * 1024)).toHaveLength(pieces)
  // The head, the pieces, the end.
  expect(messages.length).toBeLessThanOrEqual(pieces + 2)
  lines.close()
})
