import { ByteQueue, type ByteStream } from '@corral/ports'
import { encodeOutputFrame, type LineMessage, LineMessages } from '@corral/protocol'
import { expect, it } from 'vitest'
import { ProcessLines } from './process-lines.js'

const exit = { exit_code: 0, time: '2026-01-01T00:00:00.000Z' }

/** A daemon at the other end that answers the handshake with `head`, and every command with its end. */
function daemon(head: string): { dial: () => Promise<ByteStream>; sent: LineMessage[]; heads: string[] } {
  const sent: LineMessage[] = []
  const heads: string[] = []
  const dial = async (): Promise<ByteStream> => {
    const incoming = new ByteQueue()
    const messages = new LineMessages()
    let isOpen = false
    return {
      [Symbol.asyncIterator]: () => incoming[Symbol.asyncIterator](),
      async write(chunk) {
        if (!isOpen) {
          isOpen = true
          heads.push(Buffer.from(chunk).toString())
          incoming.push(Buffer.from(head))
          return
        }
        for (const message of messages.push(chunk)) {
          sent.push(message)
          incoming.push(encodeOutputFrame({ type: 'exit', offset: 0, exit }))
        }
      },
      end: () => incoming.end(),
      destroy: () => incoming.end(),
    }
  }
  return { dial, sent, heads }
}
const ready = 'HTTP/1.1 200 Ready\r\nx-corral-boot: life-1\r\n\r\n'
const signal = new AbortController().signal

it('a command carries the trace it belongs to, and the token the daemon asks for', async () => {
  const { dial, sent, heads } = daemon(ready)
  const lines = new ProcessLines({
    dial,
    authorization: async () => 'Bearer t',
    traceHeaders: () => ({ traceparent: '00-1-2-01' }),
  })
  expect(await lines.probe()).toBe('life-1')
  let sends = 0
  const onSend = () => (sends += 1)
  const source = await lines.start({ id: 'p', request: { argv: ['true'] }, boot: 'life-1', onSend }, signal)
  expect(sends).toBe(1)
  for await (const frame of source!.frames) expect(frame.type).toBe('exit')
  expect(heads[0]).toContain('\r\nauthorization: Bearer t\r\n')
  const start = { type: 'start', id: 'p', boot: 'life-1', request: { argv: ['true'] } }
  expect(sent).toEqual([{ ...start, trace: { traceparent: '00-1-2-01' } }])
  lines.close()
})

it.each([
  { what: 'a daemon of an earlier release', head: 'HTTP/1.1 400 Refused\r\n\r\n', boot: undefined },
  { what: 'a server that takes every CONNECT', head: 'HTTP/1.1 200 OK\r\n\r\n', boot: undefined },
])('$what has no lines', async ({ head, boot }) => {
  const lines = new ProcessLines({ dial: daemon(head).dial })
  expect(await lines.probe()).toBe(boot)
  const onSend = () => expect.unreachable('nothing of the command may be sent')
  expect(await lines.start({ id: 'p', request: { argv: ['true'] }, onSend }, signal)).toBeUndefined()
})

it.each([
  { what: 'a token that is refused', head: 'HTTP/1.1 401 Refused\r\n\r\n', code: 'Unauthorized' },
  { what: 'an answer without an end', head: 'x'.repeat(9_000), code: 'ProtocolViolation' },
])('$what is told as $code', async ({ head, code }) => {
  await expect(new ProcessLines({ dial: daemon(head).dial }).probe()).rejects.toMatchObject({ code })
})
