import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CorralError } from './corral-error.js'
import { DaemonClient } from './daemon-client.js'
import { encodeOutputFrame, OutputDecoder, type OutputFrame } from './output-frames.js'
import { UnsentError } from './unsent-error.js'

const exit = { exit_code: 3, time: '2026-01-01T00:00:00.000Z' }
const data = (offset: number, text: string): OutputFrame => ({
  type: 'data',
  stream: 'stdout',
  offset,
  data: new TextEncoder().encode(text),
})

/** Output in one piece where it follows on: a reader gets it in the pieces in which it came. */
function joined(frames: readonly OutputFrame[]): OutputFrame[] {
  const whole: OutputFrame[] = []
  for (const frame of frames) {
    const last = whole.at(-1)
    const follows =
      last?.type === 'data' &&
      frame.type === 'data' &&
      last.stream === frame.stream &&
      last.offset + last.data.length === frame.offset
    if (follows) whole[whole.length - 1] = { ...last, data: Uint8Array.from([...last.data, ...frame.data]) }
    else whole.push(frame)
  }
  return whole
}

describe('output frames', () => {
  it('are read as they were written, however the bytes are cut', () => {
    const offset = fc.nat({ max: 2 ** 31 - 1 })
    const frame: fc.Arbitrary<OutputFrame> = fc.oneof(
      fc.record({
        type: fc.constant('data' as const),
        stream: fc.constantFrom('stdout' as const, 'stderr' as const),
        offset,
        data: fc.uint8Array({ maxLength: 300 }),
      }),
      fc.record({ type: fc.constant('heartbeat' as const), offset }),
      fc.record({
        type: fc.constant('failure' as const),
        offset,
        code: fc.constant('NotFound'),
        message: fc.string(),
      }),
      fc.record({ type: fc.constant('exit' as const), offset, exit: fc.constant(exit) }),
    )
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 20 }), fc.integer({ min: 1, max: 400 }), (frames, size) => {
        const bytes = Buffer.concat(frames.map(encodeOutputFrame))
        const decoder = new OutputDecoder()
        const read: OutputFrame[] = []
        for (let i = 0; i < bytes.length; i += size) {
          for (const next of decoder.push(new Uint8Array(bytes.subarray(i, i + size)))) {
            read.push(next.type === 'data' ? { ...next, data: Uint8Array.from(next.data) } : next)
          }
        }
        expect(joined(read)).toEqual(joined(frames))
        expect(decoder.isComplete).toBe(true)
      }),
    )
  })

  it.each([
    { what: 'a frame that is too long', bytes: [1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0] },
    { what: 'an unknown kind', bytes: [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
    { what: 'a failure that is none', bytes: [6, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x7d] },
    { what: 'an exit that is none', bytes: [3, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x7d] },
  ])('refuse $what', ({ bytes }) => {
    expect(() => new OutputDecoder().push(Uint8Array.from(bytes))).toThrow(
      expect.objectContaining({ code: 'ProtocolViolation' }),
    )
  })
})

describe('the client reading output', () => {
  /** Each answer is what one connection delivers before it ends. */
  function clientFor(answers: (OutputFrame[] | Error | Response)[]) {
    const asked: string[] = []
    const fetch = async (url: string): Promise<Response> => {
      asked.push(new URL(url).search)
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      if (answer instanceof Response) return answer
      return new Response(Buffer.concat((answer ?? []).map(encodeOutputFrame)))
    }
    return { client: new DaemonClient({ fetch }), asked }
  }
  async function read(client: DaemonClient): Promise<string> {
    let text = ''
    for await (const event of client.readOutput('p', { reconnectMs: 2_000 })) {
      if (event.type === 'gap') text += `[${event.bytes} missing]`
      else text += event.type === 'exit' ? `exit ${event.exit.exit_code}` : Buffer.from(event.data).toString()
    }
    return text
  }

  it('goes on at the offset where a connection was cut or refused', async () => {
    const { client, asked } = clientFor([
      [data(0, 'abc')],
      new TypeError('fetch failed'),
      [data(3, 'de'), { type: 'heartbeat', offset: 5 }],
      [{ type: 'exit', offset: 5, exit }],
    ])
    expect(await read(client)).toBe('abcdeexit 3')
    expect(asked).toEqual(['0', '3', '3', '5'].map((offset) => `?offset=${offset}&follow=true`))
  })

  it('is told of output that is no longer kept, and goes on behind it', async () => {
    const { client, asked } = clientFor([
      [data(0, 'abc'), { type: 'gap', offset: 3, bytes: 7 }],
      [data(10, 'de'), { type: 'exit', offset: 12, exit }],
    ])
    expect(await read(client)).toBe('abc[7 missing]deexit 3')
    expect(asked).toEqual(['0', '10'].map((offset) => `?offset=${offset}&follow=true`))
  })

  it.each([
    { what: 'a gap nobody announced', answers: [[data(0, 'a'), data(5, 'b')]], code: 'ProtocolViolation' },
    { what: 'a repeat', answers: [[data(0, 'ab'), data(0, 'ab')]], code: 'ProtocolViolation' },
    {
      what: 'an unknown process',
      answers: [Response.json({ error: { code: 'NotFound', message: 'no' } }, { status: 404 })],
      code: 'NotFound',
    },
  ])('does not go on after $what', async ({ answers, code }) => {
    await expect(read(clientFor(answers).client)).rejects.toMatchObject({ code })
  })

  it.each<{ when: string; first: (OutputFrame[] | Error)[]; asks: number; sees: string }>([
    { when: 'no server could be reached', first: [], asks: 1, sees: 'ConnectionLost' },
    { when: 'a request was sent and its answer lost', first: [new TypeError('cut')], asks: 3, sees: 'exit 3' },
    { when: 'the output had begun', first: [[data(0, 'abc')]], asks: 3, sees: 'exit 3' },
    { when: 'the line was silent but stood', first: [[{ type: 'heartbeat', offset: 0 }]], asks: 3, sees: 'exit 3' },
  ])('where a time to connect is set, a server that goes away is asked $asks times when $when', async (row) => {
    const away = new Error('down', { cause: new UnsentError('connect ECONNREFUSED') })
    const isBegun = row.first.some((frames) => Array.isArray(frames) && frames.some(({ type }) => type === 'data'))
    const { client, asked } = clientFor([...row.first, away, [{ type: 'exit', offset: isBegun ? 3 : 0, exit }]])
    const reading = (async () => {
      for await (const event of client.follow('p', async () => undefined, { connectMs: 0 }))
        if (event.type === 'exit') return `exit ${event.exit.exit_code}`
      return 'no end'
    })()
    expect(await reading.catch(({ code }: CorralError) => code)).toBe(row.sees)
    expect(asked).toHaveLength(row.asks)
  })

  it('gives up when nobody was heard for long enough', async () => {
    const client = new DaemonClient({ fetch: () => Promise.reject(new TypeError('fetch failed')) })
    const reading = (async () => {
      for await (const _ of client.readOutput('p', { reconnectMs: 50 }));
    })()
    await expect(reading).rejects.toMatchObject({ code: 'ConnectionLost' })
  })
})

describe('the client', () => {
  it.each(['relative', '', 'a/b'])('refuses the path "%s" before asking', async (path) => {
    const client = new DaemonClient({ fetch: () => Promise.reject(new Error('asked')) })
    await expect(client.writeFile(path, '')).rejects.toMatchObject({ code: 'Invalid' })
  })

  it('does not believe an answer that is not in the contract', async () => {
    const client = new DaemonClient({ fetch: async () => Response.json({ id: 7 }) })
    await expect(client.getProcess('p')).rejects.toMatchObject({ code: 'ProtocolViolation' })
  })

  it('stops reading an answer that does not end', async () => {
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
      })
    const client = new DaemonClient({ fetch: async () => new Response(endless()) })
    await expect(client.listProcesses()).rejects.toMatchObject({ code: 'ProtocolViolation' })
    await expect(client.readFile('/x', { maxBytes: 5_000_000 })).rejects.toMatchObject({
      code: 'RequestEntityTooLarge',
    })
  })
})
