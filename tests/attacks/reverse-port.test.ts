import { createServer } from 'node:net'
import type { ByteStream } from '@corral/ports'
import { reverseHandshake } from '@corral/protocol'
import { expect, it } from 'vitest'
import { openReversePort } from '../../packages/sdk/src/reverse-port.js'

const guardMs = 120_000

/** A line to a daemon that says `chunks`, one after the other, and notes how much of it was read. */
function lineTo(chunks: () => AsyncGenerator<Uint8Array>): { line: ByteStream; read: () => number } {
  let bytes = 0
  let isOver = false
  const line: ByteStream = {
    write: async () => {},
    end: () => {},
    destroy: () => {
      isOver = true
    },
    async *[Symbol.asyncIterator]() {
      for await (const chunk of chunks()) {
        if (isOver) return
        bytes += chunk.length
        yield chunk
      }
    },
  }
  return { line, read: () => bytes }
}

const text = (value: string): Uint8Array => new TextEncoder().encode(value)

async function* withoutEnd(first: string): AsyncGenerator<Uint8Array> {
  yield text(first)
  for (;;) {
    await new Promise((next) => setImmediate(next))
    yield new Uint8Array(65_536)
  }
}

it.each([
  { what: 'a refusal', first: 'HTTP/1.1 500 No\r\n\r\n', says: 'the daemon refuses the port without an end' },
  { what: 'a head', first: 'HTTP/1.1 200 OK\r\n', says: 'the daemon answered without an end' },
])(
  'a daemon that answers $what without end is left, not kept in memory',
  async ({ first, says }) => {
    const { line, read } = lineTo(() => withoutEnd(first))
    let lines = 0
    const message = await new Promise<string>((resolve) => {
      const port = openReversePort(() => (lines++ === 0 ? Promise.resolve(line) : new Promise(() => {})), 8787, {
        target: { host: '127.0.0.1', port: 1 },
        onError: (error) => void port.close().then(() => resolve(error.message)),
      })
    })
    expect(message).toBe(says)
    expect(read()).toBeLessThan(2 ** 20)
  },
  guardMs,
)

it(
  'a daemon that takes its line is joined to the target',
  async () => {
    const target = createServer((socket) => socket.end('reached'))
    await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
    const { port } = target.address() as { port: number }
    const { line } = lineTo(async function* () {
      yield text('HTTP/1.1 200 OK\r\n\r\n')
      yield Uint8Array.of(reverseHandshake)
      await new Promise(() => {})
    })
    const said: string[] = []
    const reached = new Promise<void>((resolve) => {
      line.write = async (chunk) => {
        said.push(Buffer.from(chunk).toString())
        if (said.join('').includes('reached')) resolve()
      }
    })
    let lines = 0
    await using reverse = openReversePort(() => (lines++ === 0 ? Promise.resolve(line) : new Promise(() => {})), 8787, {
      target: { host: '127.0.0.1', port },
    })
    await reverse.ready
    await reached
    target.close()
  },
  guardMs,
)
