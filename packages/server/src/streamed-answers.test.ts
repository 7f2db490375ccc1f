import type { ConnectionCheck, TaskEvent } from '@corral/protocol'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { byteStream } from './byte-stream.js'
import { type EventFormat, eventBody, eventContentType, eventFormat } from './event-stream.js'
import { hasRoom, room } from './socket-room.js'
import { streamedChecks } from './streamed-checks.js'

afterEach(() => {
  vi.useRealTimers()
})

/** A source that gives these, then waits until it is ended; `log` has what it was asked. */
function source<T>(values: readonly T[], after?: Error): AsyncIterable<T> & { log: string[] } {
  const log: string[] = []
  let at = 0
  let end: (result: IteratorResult<T>) => void = () => undefined
  const iterator: AsyncIterator<T> = {
    async next() {
      log.push('next')
      const value = values[at++]
      if (value !== undefined) return { value, done: false }
      if (after) throw after
      return new Promise((resolve) => {
        end = resolve
      })
    },
    async return() {
      log.push('return')
      end({ value: undefined, done: true })
      return { value: undefined, done: true }
    },
  }
  return { log, [Symbol.asyncIterator]: () => iterator }
}
/** A source without a way to end it early, as a bare iterator may be. */
const bare = <T>(...values: T[]): AsyncIterable<T> => ({
  [Symbol.asyncIterator]: () => {
    let at = 0
    return {
      next: async () => {
        const value = values[at++]
        return value === undefined ? { value: undefined, done: true } : { value, done: false }
      },
    }
  },
})
const textOf = (chunk: { value?: Uint8Array | undefined }): string => Buffer.from(chunk.value ?? []).toString()
const event = { sequence: 7, type: 'output', text: 'x' } as unknown as TaskEvent

describe('events of a task on the wire', () => {
  it.each<{ accept: string | undefined; format: EventFormat; type: string }>([
    { accept: undefined, format: 'ndjson', type: 'application/x-ndjson; charset=utf-8' },
    { accept: 'application/json', format: 'ndjson', type: 'application/x-ndjson; charset=utf-8' },
    { accept: 'text/html, text/event-stream', format: 'sse', type: 'text/event-stream; charset=utf-8' },
  ])('who accepts $accept gets $format', ({ accept, format, type }) => {
    expect(eventFormat(accept)).toBe(format)
    expect(eventContentType[format]).toBe(type)
  })

  it.each<{ format: EventFormat; line: string; beat: string }>([
    { format: 'sse', line: `id: 7\nevent: output\ndata: ${JSON.stringify(event)}\n\n`, beat: ': still here\n\n' },
    { format: 'ndjson', line: `${JSON.stringify(event)}\n`, beat: '\n' },
  ])('a quiet stream of $format shows every 15 s that it lives, and loses no event for it', async (row) => {
    vi.useFakeTimers()
    const events = source([event])
    const abort = new AbortController()
    const reader = eventBody(events, row.format, abort).getReader()
    expect(textOf(await reader.read())).toBe(row.line)
    const first = reader.read()
    await vi.advanceTimersByTimeAsync(14_999)
    await vi.advanceTimersByTimeAsync(1)
    expect(textOf(await first)).toBe(row.beat)
    const second = reader.read()
    await vi.advanceTimersByTimeAsync(15_000)
    expect(textOf(await second)).toBe(row.beat)
    // One event was given and one is waited for, however often the stream was asked.
    expect(events.log).toEqual(['next', 'next'])
    await reader.cancel()
    expect([abort.signal.aborted, events.log.at(-1)]).toEqual([true, 'return'])
  })

  it('a stream ends with its events, and fails with their source', async () => {
    const whole = new Response(eventBody(bare(event, event), 'ndjson', new AbortController()))
    expect(await whole.text()).toBe(`${JSON.stringify(event)}\n`.repeat(2))
    const failed = new Response(eventBody(source([event], new Error('disk')), 'ndjson', new AbortController()))
    await expect(failed.text()).rejects.toThrow('disk')
  })

  it('a reader that leaves a source which cannot be ended aborts it all the same', async () => {
    const abort = new AbortController()
    await eventBody(bare(event), 'sse', abort).cancel()
    expect(abort.signal.aborted).toBe(true)
  })
})

describe('bytes of a task on the wire', () => {
  it('come whole with their headers', async () => {
    const answer = byteStream(bare(Buffer.from('a'), Buffer.from('b')), { 'content-type': 'text/plain' })
    expect([await answer.text(), answer.headers.get('content-type')]).toEqual(['ab', 'text/plain'])
    // Logs and patches are what a sandbox wrote, HTML among it.
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('end at their source when the client leaves', async () => {
    const chunks = source([Buffer.from('a')])
    const reader = byteStream(chunks, {}).body?.getReader()
    expect(textOf((await reader?.read()) ?? {})).toBe('a')
    await reader?.cancel()
    expect(chunks.log.at(-1)).toBe('return')
    await byteStream(bare(Buffer.from('a')), {}).body?.cancel()
  })
})

describe('checks of a connection on the wire', () => {
  const check = { name: 'reachable' } as unknown as ConnectionCheck
  it('are a line each, as they come', async () => {
    const answer: Response = await streamedChecks(new AbortController().signal, async () => bare(check, check))
    expect(await answer.text()).toBe('{"name":"reachable"}\n{"name":"reachable"}\n')
    expect(Object.fromEntries(answer.headers)).toEqual({
      'content-type': 'application/x-ndjson; charset=utf-8',
      'cache-control': 'no-cache',
    })
  })

  it('stop when the reader leaves, or its connection is gone', async () => {
    const checks = source([check])
    let signal: AbortSignal | undefined
    const look = (given: AbortSignal): AsyncIterable<ConnectionCheck> => {
      signal = given
      return checks
    }
    const answer: Response = await streamedChecks(new AbortController().signal, look)
    const reader = answer.body?.getReader()
    await reader?.read()
    await reader?.cancel()
    expect([signal?.aborted, checks.log.at(-1)]).toEqual([true, 'return'])
    const gone = new AbortController()
    await streamedChecks(gone.signal, look)
    expect(signal?.aborted).toBe(false)
    gone.abort()
    expect(signal?.aborted).toBe(true)
    const unending: Response = await streamedChecks(gone.signal, () => bare(check))
    await unending.body?.cancel()
  })

  it('that cannot begin are a failure of the request', async () => {
    const refused = streamedChecks(new AbortController().signal, () => Promise.reject(new Error('no such provider')))
    await expect(refused).rejects.toThrow('no such provider')
  })
})

describe('a slow reader of a WebSocket', () => {
  const megabyte = 1024 * 1024
  const socket = (bufferedAmount: number, readyState = 1) => ({ bufferedAmount, readyState, OPEN: 1 }) as WebSocket
  it.each([
    { when: 'nothing waits', socket: socket(0), has: true },
    { when: 'just less than a megabyte waits', socket: socket(megabyte - 1), has: true },
    { when: 'a megabyte waits', socket: socket(megabyte), has: false },
    { when: 'it has left', socket: socket(megabyte, 3), has: true },
  ])('has room: $has when $when', ({ socket, has }) => {
    expect(hasRoom(socket)).toBe(has)
  })

  it('is waited for until it has read', async () => {
    vi.useFakeTimers()
    const slow = { ...socket(megabyte) } as { bufferedAmount: number } & WebSocket
    let isOver = false
    const waiting = room(slow).then(() => {
      isOver = true
    })
    await vi.advanceTimersByTimeAsync(200)
    expect(isOver).toBe(false)
    slow.bufferedAmount = 0
    await vi.advanceTimersByTimeAsync(50)
    await waiting
    expect(isOver).toBe(true)
    await room(socket(0))
  })
})
