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

it('a body of chunks that are no bytes waited for its answer for ever', async () => {
  const answer = new ByteQueue()
  const tunnel: ByteStream = {
    [Symbol.asyncIterator]: () => answer[Symbol.asyncIterator](),
    write: async () => {},
    end: () => answer.end(),
    destroy: () => answer.end(),
  }
  const lines = streamFetch(async () => tunnel)
  const body = new ReadableStream({ start: (controller) => controller.enqueue(5) })

  await expect(lines.fetch('http://sandbox/upload', { method: 'POST', body })).rejects.toThrow('neither bytes nor text')
  lines.close()
})

it('a large stdin that the command did not read ended the program with an unhandled error', async () => {
  const answer = new ByteQueue()
  let failWrite: (error: Error) => void = () => {}
  const tunnel: ByteStream = {
    [Symbol.asyncIterator]: () => answer[Symbol.asyncIterator](),
    write(chunk) {
      if (Buffer.from(chunk).toString('latin1').startsWith('POST'))
        answer.push(Buffer.from('HTTP/1.1 409 Conflict\r\ncontent-length: 6\r\n\r\nclosed'))
      return new Promise((_, reject) => {
        failWrite = reject
      })
    },
    end: () => answer.end(),
    destroy: () => answer.end(),
  }
  const lines = streamFetch(async () => tunnel)

  const response = await lines.fetch('http://sandbox/v1/stdin', { method: 'POST', body: new Uint8Array(1024 * 1024) })
  expect(await response.text()).toBe('closed')
  failWrite(new Error('the stream is closed'))
  answer.end()
  await new Promise((resolve) => setImmediate(resolve)) // an error without a listener would be thrown here

  expect(response.status).toBe(409)
  lines.close()
})

it.each([204, 205, 304])('an answer %i, which has no body, is an answer', async (status) => {
  const answer = new ByteQueue()
  const tunnel: ByteStream = {
    [Symbol.asyncIterator]: () => answer[Symbol.asyncIterator](),
    write: async () =>
      answer.push(Buffer.from(`HTTP/1.1 ${status} Said\r\nx-form: cleared\r\ncontent-length: 0\r\n\r\n`)),
    end: () => answer.end(),
    destroy: () => answer.end(),
  }
  const lines = streamFetch(async () => tunnel)
  const response = await lines.fetch('http://sandbox/form')
  expect([response.status, response.headers.get('x-form'), await response.text()]).toEqual([status, 'cleared', ''])
  lines.close()
})

it('many requests at once printed a warning of a leak', async () => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => warnings.push(name)
  process.on('warning', onWarning)
  const lines = streamFetch(async () => {
    const answer = new ByteQueue()
    return {
      [Symbol.asyncIterator]: () => answer[Symbol.asyncIterator](),
      async write(chunk) {
        if (Buffer.from(chunk).includes('\r\n\r\n'))
          setImmediate(() => answer.push(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')))
      },
      end: () => answer.end(),
      destroy: () => answer.end(),
    }
  })
  await Promise.all(Array.from({ length: 50 }, () => lines.fetch('http://sandbox/v1/files/a')))
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', onWarning)
  expect(warnings).toEqual([])
  lines.close()
})
