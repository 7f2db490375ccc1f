import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeError,
  decodeExit,
  decodeSpec,
  encodeExit,
  encodeFrame,
  encodeSpec,
  encodeStdin,
  FrameReader,
} from './frames.js'

describe('frames', () => {
  it('come out whole however the stream is cut', () => {
    const frame = fc.record({ type: fc.integer({ min: 0, max: 255 }), payload: fc.uint8Array({ maxLength: 300 }) })
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), fc.integer({ min: 1, max: 50 }), (frames, size) => {
        const stream = Buffer.concat(frames.map(({ type, payload }) => encodeFrame(type, payload)))
        const reader = new FrameReader()
        const seen: { type: number; payload: number[] }[] = []
        for (let at = 0; at < stream.length; at += size) {
          for (const { type, payload } of reader.take(stream.subarray(at, at + size))) {
            seen.push({ type, payload: [...payload] })
          }
        }
        expect(seen).toEqual(frames.map(({ type, payload }) => ({ type, payload: [...payload] })))
      }),
      { numRuns: 100 },
    )
  })

  it('refuse a length no supervisor sends', () => {
    expect(() => [...new FrameReader(100).take(Buffer.from([1, 0xff, 0xff, 0, 0]))]).toThrow(RangeError)
  })

  it('leave what follows a switch to raw bytes untouched', () => {
    const reader = new FrameReader()
    for (const _frame of reader.take(Buffer.concat([encodeFrame(0x24), Buffer.from('raw')]))) {
      expect(reader.stop().toString()).toBe('raw')
    }
  })

  it('cut standard input into pieces a supervisor takes', () => {
    expect(encodeStdin(Buffer.alloc(150_000)).map((frame) => frame.length - 5)).toEqual([65_536, 65_536, 18_928])
  })
})

describe('process descriptions', () => {
  const spec = {
    tty: true,
    stdin: false,
    workingDir: '/work',
    podIP: '100.64.0.1',
    env: { A: 'x=y', EMPTY: '' },
    argv: ['sh', '-c', ''],
  }
  it('survive the way to the supervisor', () => {
    expect(decodeSpec(encodeSpec(spec))).toEqual(spec)
  })
  it('refuse NUL, which would become another string', () => {
    expect(() => encodeSpec({ ...spec, argv: ['a\0b'] })).toThrow(TypeError)
  })
  it('are undefined when malformed', () => {
    for (const text of ['', 'x', 'a\0b\0', '\0/\0\x009\0A=1\0sh\0', '\0/\0\x00-1\0sh\0']) {
      expect(decodeSpec(Buffer.from(text))).toBeUndefined()
    }
  })
})

describe('answers', () => {
  it('carry exit code, signal and message', () => {
    expect(decodeExit(encodeExit(137, 9, 'gone').subarray(5))).toEqual({ exitCode: 137, signal: 9, message: 'gone' })
    expect(decodeExit(encodeExit(0, 0).subarray(5))).toEqual({ exitCode: 0 })
  })
  it('carry errors as code and message', () => {
    expect(decodeError(Buffer.from('NotFound no such file'))).toEqual({ code: 'NotFound', message: 'no such file' })
  })
})
