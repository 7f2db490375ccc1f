import { expect, it } from 'vitest'
import { collected, parseAtOnce, parseCount, parseDurationSeconds, parsePort, parsePriority } from './parse-duration.js'

it.each([
  ['90', 90],
  ['90s', 90],
  ['30m', 1800],
  ['1h30m', 5400],
  ['2h', 7200],
  ['7d', 604_800],
])('%s is %d seconds', (text, seconds) => {
  expect(parseDurationSeconds(text)).toBe(seconds)
})

it.each(['', '-1', '1w', 'm', '1h x', '1.5h', '1h30'])('"%s" is not a duration', (text) => {
  expect(() => parseDurationSeconds(text)).toThrow(/duration/)
})

it.each(['367d', '99999999999999999999'])('"%s" is too long for a timer', (text) => {
  expect(() => parseDurationSeconds(text)).toThrow('at most 366d')
})

it.each(['-1', '65536', 'http', '1.5'])('"%s" is not a port', (text) => {
  expect(() => parsePort(text)).toThrow(/port/)
})

it.each([
  ['-1000', -1000],
  ['0', 0],
  ['+7', 7],
  ['1000', 1000],
])('%s is the priority %d', (text, priority) => {
  expect(parsePriority(text)).toBe(priority)
})

it.each(['', '1001', '-1001', 'high', '1.5'])('"%s" is not a priority', (text) => {
  expect(() => parsePriority(text)).toThrow('from -1000 to 1000')
})

it('takes any whole number as a count', () => {
  expect(parseCount('0')).toBe(0)
  expect(() => parseCount('x')).toThrow('Give a whole number.')
  expect(() => parseCount('99999999999999999999')).toThrow('Give a smaller number.')
})

it('refuses a number of sandboxes that no machine can hold', () => {
  expect(parseAtOnce('99999')).toBe(99_999)
  expect(() => parseAtOnce('100000')).toThrow('from 0 to 99999')
})

it('gathers names over commas and repeats', () => {
  expect(collected('a.example, b.example', [])).toEqual(['a.example', 'b.example'])
  expect(collected('', collected('c.example', ['a.example']))).toEqual(['a.example', 'c.example'])
})
