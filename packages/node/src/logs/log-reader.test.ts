import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CriDecoder, parseCriLine } from './cri-log.js'
import { type LogReadOptions, readLog } from './log-reader.js'

const line = (second: number, text: string, stream = 'stdout', tag = 'F'): string =>
  `2026-01-01T00:00:0${second}.123456789Z ${stream} ${tag} ${text}\n`

describe('parseCriLine', () => {
  it.each([
    {
      what: 'a line of output',
      text: '2026-01-01T00:00:00Z stdout F hello world',
      is: { stream: 'stdout', isLineEnd: true, text: 'hello world' },
    },
    {
      what: 'an empty line',
      text: '2026-01-01T00:00:00Z stderr F ',
      is: { stream: 'stderr', isLineEnd: true, text: '' },
    },
    {
      what: 'a piece of a line',
      text: '2026-01-01T00:00:00Z stdout P hel',
      is: { stream: 'stdout', isLineEnd: false, text: 'hel' },
    },
    { what: 'nothing of a half-written entry', text: '2026-01-01T00:00:00Z std', is: undefined },
    { what: 'nothing of anything else', text: 'hello', is: undefined },
  ])('reads $what', ({ text, is }) => {
    const entry = parseCriLine(Buffer.from(text))
    expect(entry && { stream: entry.stream, isLineEnd: entry.isLineEnd, text: entry.text.toString() }).toEqual(is)
  })
})

describe('CriDecoder', () => {
  it('gives the same output however the bytes are cut', () => {
    const whole = Buffer.from(line(0, 'ä one') + line(1, 'tw', 'stdout', 'P') + line(1, 'o') + line(2, ''))
    const expected = 'ä one\ntwo\n\n'
    for (let size = 1; size <= whole.length; size++) {
      const decoder = new CriDecoder({ timestamps: false })
      const parts: Buffer[] = []
      for (let at = 0; at < whole.length; at += size) parts.push(decoder.push(whole.subarray(at, at + size)))
      expect(Buffer.concat(parts).toString()).toBe(expected)
    }
  })
})

describe('readLog', () => {
  let directory: string
  let file: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'corral-log-'))
    file = join(directory, '0.log')
    writeFileSync(file, line(1, 'one') + line(2, 'two', 'stderr') + line(3, 'three'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const read = async (options: Partial<LogReadOptions>): Promise<string> => {
    const parts: Uint8Array[] = []
    for await (const chunk of readLog({ file, ...options })) parts.push(chunk)
    return Buffer.concat(parts).toString()
  }

  it.each<{ asked: string; options: Partial<LogReadOptions>; gives: string }>([
    { asked: 'everything', options: {}, gives: 'one\ntwo\nthree\n' },
    { asked: 'the last two lines', options: { tailLines: 2 }, gives: 'two\nthree\n' },
    { asked: 'more lines than there are', options: { tailLines: 20 }, gives: 'one\ntwo\nthree\n' },
    { asked: 'no line', options: { tailLines: 0 }, gives: '' },
    {
      asked: 'what came since a time',
      options: { sinceMs: Date.parse('2026-01-01T00:00:02Z') },
      gives: 'two\nthree\n',
    },
    { asked: 'a few bytes', options: { limitBytes: 5 }, gives: 'one\nt' },
    {
      asked: 'the last line with its time',
      options: { tailLines: 1, timestamps: true },
      gives: '2026-01-01T00:00:03.123456789Z three\n',
    },
    { asked: 'a log that is not there', options: { file: '/nonexistent/log' }, gives: '' },
  ])('answers $asked', async ({ options, gives }) => {
    expect(await read(options)).toBe(gives)
  })

  it('follows until the run has ended, and loses nothing of its end', async () => {
    let end: () => void = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const chunks = readLog({ file, follow: { ended } })[Symbol.asyncIterator]()
    expect((await chunks.next()).value?.toString()).toBe('one\ntwo\nthree\n')
    appendFileSync(file, line(4, 'four'))
    expect((await chunks.next()).value?.toString()).toBe('four\n')
    appendFileSync(file, line(5, 'five'))
    end()
    expect((await chunks.next()).value?.toString()).toBe('five\n')
    expect((await chunks.next()).done).toBe(true)
  })

  it('goes on in the next file after a rotation', async () => {
    const stop = new AbortController()
    const chunks = readLog({ file, follow: { ended: new Promise(() => {}) }, signal: stop.signal })[
      Symbol.asyncIterator
    ]()
    await chunks.next()
    renameSync(file, `${file}.1`)
    writeFileSync(file, line(4, 'four'))
    expect((await chunks.next()).value?.toString()).toBe('four\n')
    stop.abort()
    expect((await chunks.next()).done).toBe(true)
  })
})
