import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readDnsQuestion, writeDnsAnswer } from './dns-message.js'

function query(name: string, type = 1): Buffer {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  return Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1])
}

describe('DNS messages', () => {
  it('reads a question and answers it with an address', () => {
    const message = query('api.example.org')
    const question = readDnsQuestion(message)
    expect(question).toMatchObject({ name: 'api.example.org', type: 1 })
    const answer = writeDnsAnswer(message, question as NonNullable<typeof question>, '198.18.0.2')
    expect(answer.readUInt16BE(0)).toBe(0x1234)
    expect(answer.readUInt16BE(2) & 0x800f).toBe(0x8000)
    expect([...answer.subarray(-4)]).toEqual([198, 18, 0, 2])
  })

  it.each([
    { when: 'the name is unknown', type: 1, address: undefined, code: 3, answers: 0 },
    { when: 'another type of a known name is asked', type: 28, address: '198.18.0.2', code: 0, answers: 0 },
  ])('answers without data when $when', ({ type, address, code, answers }) => {
    const message = query('a.b', type)
    const question = readDnsQuestion(message)
    const answer = writeDnsAnswer(message, question as NonNullable<typeof question>, address)
    expect([answer.readUInt16BE(2) & 15, answer.readUInt16BE(6)]).toEqual([code, answers])
  })

  it.each([
    { what: 'a NUL in a label', labels: ['10.1.2.3\0', 'example', 'org'] },
    { what: 'a dot in a label', labels: ['10.1.2.3', 'example.org'] },
    { what: 'a space', labels: ['a b', 'example', 'org'] },
    { what: 'a line break', labels: ['a\n', 'example', 'org'] },
    { what: 'a percent sign', labels: ['a%00', 'example', 'org'] },
    { what: 'a byte outside ASCII', labels: ['\xe9', 'example', 'org'] },
    { what: 'more than 253 characters', labels: [...Array(5).fill('a'.repeat(60)), 'example', 'org'] },
    { what: 'the root', labels: [] },
  ])('takes no name with $what, and answers that there is none', ({ labels }) => {
    const bytes = labels.flatMap((label) => [label.length, ...Buffer.from(label, 'latin1')])
    const message = Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...bytes, 0, 0, 1, 0, 1])
    const question = readDnsQuestion(message)
    expect(question).toMatchObject({ name: undefined })
    expect(writeDnsAnswer(message, question as NonNullable<typeof question>, undefined).readUInt16BE(2) & 15).toBe(3)
  })

  it.each(['a', 'API.Example.ORG', '_acme-challenge.x-1.example'])('takes %s in lower case', (name) => {
    expect(readDnsQuestion(query(name))).toMatchObject({ name: name.toLowerCase() })
  })

  it('never throws on what a sandbox may send', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        const message = Buffer.from(bytes)
        const question = readDnsQuestion(message)
        if (question) writeDnsAnswer(message, question, '198.18.0.2')
      }),
      { numRuns: 500 },
    )
  })
})
