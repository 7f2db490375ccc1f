import { eventLimits } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { OutputJoiner } from './output-joiner.js'

const mebibyte = 1024 * 1024

function read(bytes: Uint8Array, chunkBytes: number): string[] {
  const joiner = new OutputJoiner('stdout')
  const events = []
  for (let at = 0; at < bytes.length; at += chunkBytes) events.push(...joiner.push(bytes.subarray(at, at + chunkBytes)))
  events.push(...joiner.end())
  return events.map((event) => (event.type === 'output' ? event.text : ''))
}

const numbered = (count: number): Buffer => Buffer.from(Array.from({ length: count }, (_, i) => `line ${i}\n`).join(''))
const random = Buffer.from(Array.from({ length: mebibyte }, (_, i) => (i * 2654435761) >>> 24))

describe('joined output', () => {
  it('4 MB of yes no longer become 237 MB of events', () => {
    const texts = read(Buffer.from('y\n'.repeat(2 * mebibyte)), 64 * 1024)
    const stored = texts.reduce((sum, text) => sum + JSON.stringify({ type: 'output', text }).length + 100, 0)
    expect(stored).toBeLessThan(8 * mebibyte)
    expect(texts.join('').length).toBe(4 * mebibyte)
  })

  it('shows the first lines one by one, as they come', () => {
    const joiner = new OutputJoiner('stdout')
    for (let line = 0; line < 50; line++) expect(joiner.push(Buffer.from(`step ${line}\n`))).toHaveLength(1)
  })

  it.each([
    { what: 'short lines', bytes: numbered(100_000) },
    { what: 'one long line', bytes: Buffer.alloc(mebibyte, 'x') },
    { what: 'anything but text', bytes: random },
    { what: 'characters of several bytes', bytes: Buffer.from('ä€😀'.repeat(60_000)) },
    { what: 'lines that end as on Windows', bytes: Buffer.from('one\r\ntwo\r\n'.repeat(20_000)) },
  ])('gives the same events of $what however they are cut', ({ bytes }) => {
    const whole = read(bytes, bytes.length)
    expect(whole.every((text) => text.length <= eventLimits.outputCharacters)).toBe(true)
    expect(read(bytes, 1_021)).toEqual(whole)
    expect(read(bytes, 65_536)).toEqual(whole)
    const text = bytes.toString('utf8').replaceAll('\r\n', '\n')
    expect(whole.join('')).toBe(text.endsWith('\n') ? text : `${text}\n`)
  })
})
