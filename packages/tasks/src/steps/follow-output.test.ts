import { findAgent } from '@corral/agents'
import type { AgentEvent, OutputEvent, OutputStream } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { followOutput } from './follow-output.js'
import { type OutputCaps, outputCaps } from './output-caps.js'

const mebibyte = 1024 * 1024
const signal = new AbortController().signal
const small: OutputCaps = {
  eventHeadBytes: 20_000,
  eventTailBytes: 4_000,
  logHeadBytes: 50_000,
  logTailBytes: 30_000,
  setupEventBytes: 1_000,
  checkEventBytes: 1,
}

/** A daemon whose process wrote these pieces and ended. */
function daemonWith(pieces: readonly { stream: OutputStream; data: Uint8Array }[], frameBytes: number) {
  const reads: number[] = []
  return {
    reads,
    async *readOutput(
      _id: string,
      { offset: from = 0 }: { offset?: number | undefined } = {},
    ): AsyncIterable<OutputEvent> {
      reads.push(from)
      let offset = 0
      for (const { stream, data } of pieces) {
        for (let at = 0; at < data.length; at += frameBytes) {
          const frame = data.subarray(at, at + frameBytes)
          const start = Math.max(0, from - offset)
          if (start < frame.length) yield { type: 'data', stream, offset: offset + start, data: frame.subarray(start) }
          offset += frame.length
        }
      }
      yield { type: 'exit', offset, exit: { exit_code: 0, ended_at: '2026-01-01T00:00:00Z' } as never }
    },
  }
}

async function follow(
  pieces: readonly { stream: OutputStream; data: Uint8Array }[],
  {
    caps = small,
    frameBytes = 4_096,
    agent = 'command',
  }: { caps?: OutputCaps; frameBytes?: number; agent?: string } = {},
) {
  const parser = findAgent(agent)!.createParser()
  const events: AgentEvent[] = []
  const log: Buffer[] = []
  const daemon = daemonWith(pieces, frameBytes)
  const exit = await followOutput({
    daemon,
    processId: 'x',
    parser,
    log: { write: async (data) => void log.push(Buffer.from(data)) },
    onEvents: async (more) => void events.push(...more),
    caps,
    signal,
  })
  events.push(...parser.end({ exitCode: exit?.exit_code ?? -1 }))
  const texts = events.map((event) => ('text' in event ? (event.text ?? '') : ''))
  const notices = texts.filter((text) => /left out here/.test(text))
  const eventBytes = Buffer.byteLength(events.map((event) => JSON.stringify(event)).join('\n'))
  return { events, texts, notices, eventBytes, log: Buffer.concat(log).toString('latin1'), parser, daemon }
}

const numbered = (count: number): Buffer => Buffer.from(Array.from({ length: count }, (_, i) => `line ${i}\n`).join(''))
const stdout = (data: Uint8Array) => [{ stream: 'stdout' as const, data }]

describe('the output of an agent', () => {
  it('that fits is kept whole, read once', async () => {
    const { texts, notices, log, daemon } = await follow(stdout(numbered(200)))
    expect(texts.join('')).toBe(numbered(200).toString())
    expect(log).toBe(numbered(200).toString('latin1'))
    expect(notices).toEqual([])
    expect(daemon.reads).toEqual([0])
  })

  it('that is too much keeps beginning and end, and one event says how much is missing between', async () => {
    const all = numbered(50_000)
    const { texts, notices, log, eventBytes } = await follow(stdout(all))
    expect(texts[0]).toBe('line 0\n')
    expect(texts.at(-1)).toMatch(/line 49999\n$/)
    expect(notices).toHaveLength(1)
    const missing = Number(/about (\d+) bytes/.exec(notices[0]!)?.[1])
    expect(missing).toBeGreaterThan(all.length * 0.9)
    expect(missing).toBeLessThan(all.length)
    expect(eventBytes).toBeLessThan(2 * 20_000 + 2_000)
    expect(log.startsWith('line 0\n')).toBe(true)
    expect(log.endsWith('line 49999\n')).toBe(true)
    expect(log).toContain(`\n[${all.length - 80_000} bytes of output are left out here]\n`)
    expect(log.length).toBeLessThan(80_100)
  })

  it.each([
    { what: 'yes', data: stdout(Buffer.from('y\n'.repeat(300_000))) },
    { what: 'one long line', data: stdout(Buffer.alloc(500_000, 'x')) },
    { what: 'binary', data: stdout(Buffer.from(Array.from({ length: 500_000 }, (_, i) => (i * 7919) & 0xff))) },
    {
      what: 'both streams in turn',
      data: Array.from({ length: 4_000 }, (_, i) => ({
        stream: (i % 2 === 0 ? 'stdout' : 'stderr') as OutputStream,
        data: Buffer.from(`piece ${i} ${'z'.repeat(90)}\n`),
      })),
    },
  ])('$what: the same bytes give the same events when they are read again in other pieces', async ({ data }) => {
    const first = await follow(data)
    expect(first.notices).toHaveLength(1)
    expect(first.eventBytes).toBeLessThan(2 * 20_000 + 20_000)
    expect(
      await follow(data, { frameBytes: 1_000 }).then(({ texts }) => texts.filter((text) => !/left out/.test(text))),
    ).toEqual(first.texts.filter((text) => !/left out/.test(text)))
    expect((await follow(data)).events).toEqual(first.events)
  })

  it('100 MB of yes are held to the default caps', async () => {
    const { notices, eventBytes, texts } = await follow(stdout(Buffer.alloc(100 * mebibyte, 'y\n')), {
      caps: outputCaps,
      frameBytes: 64 * 1024,
    })
    expect(notices).toHaveLength(1)
    expect(eventBytes).toBeLessThan(64 * mebibyte)
    expect(texts.at(-1)).toMatch(/y\n$/)
  }, 300_000)

  it('an agent that floods and then says how it ended is judged by that', async () => {
    const result = JSON.stringify({ type: 'result', subtype: 'success', is_error: false, usage: { input_tokens: 7 } })
    const flood = Buffer.from(`${JSON.stringify({ type: 'system', text: 'x'.repeat(200) })}\n`.repeat(2_000))
    const { parser, events } = await follow(stdout(Buffer.concat([flood, Buffer.from(`${result}\n`)])), {
      agent: 'claude',
    })
    expect(parser.verdict).toEqual({ ok: true })
    expect(events.at(-1)).toMatchObject({ type: 'usage', input_tokens: 7 })
  })
})
