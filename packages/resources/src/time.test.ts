import { describe, expect, it } from 'vitest'
import { formatMicroTime, formatTime, isTime, parseTime } from './time.js'

describe('times', () => {
  const instant = new Date('2026-11-15T10:20:30.456Z')

  it('writes Time with seconds and MicroTime with six decimals', () => {
    expect(formatTime(instant)).toBe('2026-11-15T10:20:30Z')
    expect(formatMicroTime(instant)).toBe('2026-11-15T10:20:30.456000Z')
  })

  it.each([
    '2026-11-15T10:20:30Z',
    '2026-11-15T10:20:30.123456789Z',
    '2024-02-29T00:00:00+02:00',
    '0001-01-01T00:00:00Z',
  ])('%s is a time', (text) => {
    expect(isTime(text)).toBe(true)
    expect(parseTime(text)?.getTime()).not.toBeNaN()
  })

  it.each([
    '2026-11-15',
    '2026-11-15T10:20:30',
    '2026-11-15 10:20:30Z',
    '2023-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01T00:00:00+24:00',
    'tomorrow',
  ])('%s is none', (text) => {
    expect(isTime(text)).toBe(false)
    expect(parseTime(text)).toBeUndefined()
  })
})
