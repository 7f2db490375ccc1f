import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RecordPart, TaskRecord, TaskRecords } from './task-records.js'

const uid = '0b9d3a52-0000-4000-8000-000000000001'
const never = new AbortController().signal
const parts: RecordPart[] = [
  'agent-log',
  'diff',
  'bundle-in',
  'bundle-out',
  'session',
  'artifact/a.txt',
  'checkpoint/1',
]

async function* chunks(...texts: string[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}

async function textOf(record: TaskRecord, part: RecordPart): Promise<string> {
  const all: Uint8Array[] = []
  for await (const chunk of record.read(part)) all.push(chunk)
  return Buffer.concat(all).toString()
}

/** What every storage of task records must do. */
export function describeTaskRecords(name: string, open: () => TaskRecords): void {
  describe(`task records: ${name}`, () => {
    let records: TaskRecords
    let record: TaskRecord
    beforeEach(() => {
      records = open()
      record = records.of(uid)
    })
    afterEach(() => records.close())

    it.each(parts)('%s is empty at first, then what was written last', async (part) => {
      expect(await record.find(part)).toBeUndefined()
      expect(await textOf(record, part)).toBe('')
      expect(await record.write(part, chunks('first ', 'version'), { signal: never })).toEqual({ sizeBytes: 13 })
      await record.write(part, chunks('second'), { signal: never })
      expect(await textOf(records.of(uid), part)).toBe('second')
      expect(await record.find(part)).toEqual({ sizeBytes: 6 })
      await record.remove(part)
      await record.remove(part)
      expect(await record.find(part)).toBeUndefined()
    })

    it('an empty part is a part', async () => {
      await record.write('diff', chunks(), { signal: never })
      expect(await record.find('diff')).toEqual({ sizeBytes: 0 })
      expect(await textOf(record, 'diff')).toBe('')
    })

    it('parts do not share content, nor do tasks', async () => {
      for (const part of parts) await record.write(part, chunks(part), { signal: never })
      for (const part of parts) expect(await textOf(record, part)).toBe(part)
      for (const part of parts) expect(await textOf(records.of('another-task'), part)).toBe('')
    })

    it.each<{ why: string; content: () => AsyncIterable<Uint8Array>; signal?: AbortSignal; says: string }>([
      {
        why: 'its source breaks off',
        async *content() {
          yield Buffer.from('half')
          throw new Error('the sandbox is gone')
        },
        says: 'the sandbox is gone',
      },
      { why: 'it is no longer wanted', content: () => chunks('half'), signal: AbortSignal.abort(), says: 'aborted' },
    ])('a write that fails because $why leaves what was there', async ({ content, signal, says }) => {
      await record.write('artifact/report', chunks('whole'), { signal: never })
      await expect(record.write('artifact/report', content(), { signal: signal ?? never })).rejects.toThrow(says)
      expect(await textOf(record, 'artifact/report')).toBe('whole')
      await expect(record.write('artifact/new', content(), { signal: signal ?? never })).rejects.toThrow(says)
      expect(await record.list('artifact')).toEqual(['report'])
    })

    it('a growing part can be read while it grows and starts anew with the next writer', async () => {
      const writer = await record.openWriter('agent-log')
      await writer.write(Buffer.from('one '))
      expect(await textOf(record, 'agent-log')).toBe('one ')
      await writer.write(Buffer.from('two!'))
      expect(await textOf(record, 'agent-log')).toBe('one two!')
      await writer.dropHalf()
      expect(await textOf(record, 'agent-log')).toBe('one ')
      await writer.close()
      const next = await record.openWriter('agent-log')
      expect(await textOf(record, 'agent-log')).toBe('')
      await next.write(Buffer.from('again'))
      await next.close()
      expect(await textOf(record, 'agent-log')).toBe('again')
    })

    it('lists collections by name, each on its own', async () => {
      expect(await record.list('artifact')).toEqual([])
      await record.write('artifact/b', chunks('b'), { signal: never })
      await record.write('artifact/a', chunks('a'), { signal: never })
      await record.write('checkpoint/1', chunks('1'), { signal: never })
      expect(await record.list('artifact')).toEqual(['a', 'b'])
      expect(await record.list('checkpoint')).toEqual(['1'])
    })

    it.each(['../diff.patch', '', '.', '..', 'a/b', '.hidden', 'x.partial', 'a\0b', 'x'.repeat(129)])(
      'refuses the file name %j',
      async (file) => {
        for (const part of [`artifact/${file}`, `checkpoint/${file}`] as const) {
          const refusal = { code: 'BadRequest', message: expect.stringContaining('cannot be the name of a kept file') }
          await expect(record.write(part, chunks('x'), { signal: never })).rejects.toMatchObject(refusal)
          await expect(record.openWriter(part)).rejects.toMatchObject(refusal)
        }
        expect(await record.list('artifact')).toEqual([])
      },
    )

    it('refuses a uid that is a path', async () => {
      const refusal = { code: 'BadRequest', message: expect.stringContaining('is not a task uid') }
      expect(() => records.of('../x')).toThrow(expect.objectContaining(refusal))
      await expect(records.events.append('../x', [])).rejects.toMatchObject(refusal)
      await expect(records.remove('../x')).rejects.toMatchObject(refusal)
    })

    it('programs get a part as a file, and what they wrote is kept', async () => {
      await record.write('bundle-out', chunks('bundle'), { signal: never })
      expect(readFileSync(await record.localFile('bundle-out'), 'utf8')).toBe('bundle')
      await expect(record.localFile('session')).rejects.toThrow('holds no session')
      const written = join(await record.workDirectory(), 'made-by-git')
      writeFileSync(written, 'a bundle')
      await record.keepFile('bundle-in', written)
      expect(existsSync(written)).toBe(false)
      expect(await textOf(record, 'bundle-in')).toBe('a bundle')
    })

    it('a removed record leaves neither parts nor events nor its work directory', async () => {
      const work = await record.workDirectory()
      expect(existsSync(dirname(work))).toBe(true)
      for (const part of parts) await record.write(part, chunks('x'), { signal: never })
      await records.events.append(uid, [{ type: 'result', status: 'SUCCEEDED' }])
      await records.remove(uid)
      await records.remove(uid)
      expect(existsSync(work)).toBe(false)
      for (const part of parts) expect(await records.of(uid).find(part)).toBeUndefined()
      expect(await records.events.tail(uid)).toMatchObject({ sequence: 0, finished: false })
    })
  })
}
