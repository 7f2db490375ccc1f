import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dataFrames, goAway, rstStream, SpdyDecoder, type SpdyFrame, synReply } from './frames.js'

function decode(bytes: Uint8Array, cuts: readonly number[] = []): SpdyFrame[] {
  const decoder = new SpdyDecoder()
  const frames: SpdyFrame[] = []
  let start = 0
  for (const cut of [...cuts, bytes.length]) {
    frames.push(...decoder.push(bytes.subarray(start, Math.max(start, cut))))
    start = Math.max(start, cut)
  }
  return frames
}

describe('SPDY frames', () => {
  it('carry data of any size, however the network cuts them', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 100_000, size: 'max' }),
        fc.array(fc.nat(100_100), { maxLength: 20 }),
        (payload, cuts) => {
          const wire = Buffer.concat([...dataFrames(7, payload, true)])
          const sorted = cuts.filter((cut) => cut < wire.length).sort((a, b) => a - b)
          const frames = decode(wire, sorted)
          const parts = frames.map((frame) => (frame.type === 'data' ? frame.payload : Buffer.alloc(0)))
          expect(Buffer.concat(parts).equals(payload)).toBe(true)
          expect(frames.map((frame) => frame.type === 'data' && frame.fin)).toEqual([
            ...frames.slice(1).map(() => false),
            true,
          ])
        },
      ),
      { numRuns: 50 },
    )
  })

  it('never exceed 32 KiB of payload', () => {
    const sizes = [...dataFrames(1, new Uint8Array(100_000), false)].map((frame) => frame.length - 8)
    expect(sizes).toEqual([32_768, 32_768, 32_768, 1_696])
  })

  it.each([
    { name: 'RST_STREAM', wire: rstStream(5, 3), frame: { type: 'rstStream', streamId: 5 } },
    { name: 'GOAWAY', wire: goAway(9), frame: { type: 'goAway' } },
    { name: 'SYN_REPLY, which only clients read', wire: synReply(3, Buffer.alloc(4)), frame: { type: 'ignored' } },
  ])('read back $name', ({ wire, frame }) => {
    expect(decode(wire)).toEqual([frame])
  })

  it('refuse a control frame nobody needs so large', () => {
    const wire = Buffer.from([0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff])
    expect(() => decode(wire)).toThrow('a control frame of 16777215 bytes')
  })

  it('hand on data before its frame is complete', () => {
    const wire = Buffer.concat([...dataFrames(1, Buffer.from('hello'), true)])
    const decoder = new SpdyDecoder()
    expect([...decoder.push(wire.subarray(0, 10))]).toMatchObject([{ type: 'data', fin: false }])
    expect([...decoder.push(wire.subarray(10))]).toMatchObject([{ type: 'data', fin: true }])
  })
})
