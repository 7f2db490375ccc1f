import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatGoDuration, formatMilliseconds, parseGoDuration } from './duration.js'

describe('Go durations', () => {
  it.each([
    ['0', '0s'],
    ['5m', '5m0s'],
    ['300s', '5m0s'],
    ['1.5h', '1h30m0s'],
    ['1h0m0.25s', '1h0m0.25s'],
    ['-2m1s', '-2m1s'],
    ['250ms', '250ms'],
    ['1500us', '1.5ms'],
    ['7ns', '7ns'],
    ['.5s', '500ms'],
  ])('%s is written %s', (text, written) => {
    const nanoseconds = parseGoDuration(text)
    expect(nanoseconds).toBeDefined()
    expect(formatGoDuration(nanoseconds!)).toBe(written)
  })

  it.each(['', '5', 's', '5 m', '1d', '--5s', '.s', '5m-1s', '9999999h'])('%s is none', (text) => {
    expect(parseGoDuration(text)).toBeUndefined()
  })

  it('prints milliseconds the way controllers put them into messages', () => {
    expect(formatMilliseconds(300_000)).toBe('5m0s')
  })

  it('reads back every duration it writes', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), (nanoseconds) => {
        expect(parseGoDuration(formatGoDuration(nanoseconds))).toBe(nanoseconds)
      }),
    )
  })
})
