import { describe, expect, it } from 'vitest'
import { encodeLineMessage, type LineMessage, LineMessages } from './process-line.js'

const start: LineMessage = { type: 'start', id: 'p-1', boot: 'b', request: { argv: ['echo', 'é'] } }
const confirm: LineMessage = { type: 'confirm', offset: 7 }

describe('messages on a process line', () => {
  it.each([1, 3, 1_000])('are read as they were sent, in pieces of %i bytes', (size) => {
    const bytes = Buffer.concat([start, confirm, start].map(encodeLineMessage))
    const messages = new LineMessages()
    const read: LineMessage[] = []
    for (let at = 0; at < bytes.length; at += size) read.push(...messages.push(bytes.subarray(at, at + size)))
    expect(read).toEqual([start, confirm, start])
  })

  it.each([
    { what: 'a length that is too long', bytes: [0xff, 0, 0, 0], says: /too long/ },
    { what: 'something that is no message', bytes: [0, 0, 0, 2, 0x7b, 0x7d], says: /type/ },
    { what: 'something that is no JSON', bytes: [0, 0, 0, 1, 0x7b], says: /JSON/ },
  ])('refuse $what', ({ bytes, says }) => {
    expect(() => new LineMessages().push(Uint8Array.from(bytes))).toThrow(says)
  })
})
