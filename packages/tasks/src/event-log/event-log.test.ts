import { appendFileSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TaskEventBody } from '@corral/protocol'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EventLog } from './event-log.js'
import { collect, describeEventLog, line, numbersTo, result, sequences, uid } from './event-log.test-suite.js'
import { fileEventLog } from './file-event-log.js'
import { memoryEventLog } from './memory-event-log.js'

const parent = mkdtempSync(join(tmpdir(), 'corral-events-'))
afterAll(() => rmSync(parent, { recursive: true, force: true }))
const now = (): Date => new Date('2026-01-01T00:00:00Z')

describeEventLog('memory', () => memoryEventLog({ now }))
describeEventLog('file', () => fileEventLog({ directory: mkdtempSync(join(parent, 'log-')), now }))

describe('a log in a file', () => {
  let directory: string
  let log: EventLog
  const path = (): string => join(directory, uid, 'events.ndjson')
  const reopen = async (): Promise<void> => {
    await log.close()
    log = fileEventLog({ directory, now })
  }
  beforeEach(() => {
    directory = mkdtempSync(join(parent, 'restarts-'))
    log = fileEventLog({ directory, now })
  })
  afterEach(() => log.close())

  it('D-9: goes on with the next sequence after a restart, and remembers what came from the agent', async () => {
    await log.append(uid, [line('platform'), { type: 'stage', stage: 'setup', state: 'started' }])
    await log.append(uid, [line('a'), line('b')], 'agent')
    await reopen()
    expect(await log.tail(uid)).toEqual({ sequence: 4, agentEvents: 2, finished: false })
    await log.append(uid, [{ type: 'stage', stage: 'setup', state: 'started' }, result])
    expect(await log.tail(uid)).toEqual({ sequence: 5, agentEvents: 2, finished: true })
  })

  it.each([1, 5, 60])('cuts off a line of which a crash took the last %i bytes', async (bytes) => {
    await log.append(uid, [line('whole'), line('torn')])
    await log.close()
    truncateSync(path(), readFileSync(path()).length - bytes)
    await reopen()
    await log.append(uid, [line('next')])
    const events = await collect(log.read(uid))
    expect(events.map((event) => [event.sequence, (event as { text?: string }).text])).toEqual([
      [1, 'whole'],
      [2, 'next'],
    ])
  })

  it('cuts off a torn line longer than any buffer, and nothing before it', async () => {
    await log.append(uid, [line('whole')])
    await log.close()
    appendFileSync(path(), `{"sequence":2,"text":"${'x'.repeat(3 * 2 ** 20)}`)
    await reopen()
    expect(await log.tail(uid)).toMatchObject({ sequence: 1 })
    await log.append(uid, [result])
    expect(sequences(await collect(log.read(uid)))).toEqual([1, 2])
  })

  it('reads a whole line longer than any buffer', async () => {
    const long: TaskEventBody = line('x'.repeat(3 * 2 ** 20))
    await log.append(uid, [line('a'), long, line('b')])
    await reopen()
    const events = await collect(log.read(uid))
    expect(events.map((event) => (event as { text: string }).text.length)).toEqual([1, 3 * 2 ** 20, 1])
  })

  it('does not show a half-written line to a reader, and shows it once it is whole', async () => {
    await log.append(uid, [line('whole')])
    await reopen()
    const text = '{"sequence":2,"type":"output","stream":"stdout","text":"late"}\n'
    appendFileSync(path(), text.slice(0, 20))
    expect(await collect(log.read(uid))).toHaveLength(1)
    appendFileSync(path(), text.slice(20))
    expect(await collect(log.read(uid))).toHaveLength(2)
  })

  it('a follower begun before the log was opened goes on across the recovery', async () => {
    await log.append(uid, [line('1'), line('2')])
    await reopen()
    appendFileSync(path(), '{"sequence":3,"ty')
    const reader = log.read(uid, { follow: true })[Symbol.asyncIterator]()
    expect((await reader.next()).value).toMatchObject({ sequence: 1 })
    await log.append(uid, [line('3')])
    await log.append(uid, [result])
    const rest: number[] = []
    for (let next = await reader.next(); !next.done; next = await reader.next()) rest.push(next.value.sequence)
    expect(rest).toEqual([2, 3, 4])
  })

  it('a reader resumes with its last sequence after a restart', async () => {
    await log.append(
      uid,
      numbersTo(1_000).map((index) => line(`${index} ${'x'.repeat(500)}`)),
    )
    await reopen()
    const reading = collect(log.read(uid, { after: 990, follow: true }))
    await log.append(uid, [result])
    expect(sequences(await reading)).toEqual(numbersTo(1_001).slice(990))
  })

  it('a follower reads what is new, not the whole log again on every append', async () => {
    const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
    await log.append(
      uid,
      numbersTo(1_000).map((index) => line(`${index} ${'x'.repeat(500)}`)),
    )
    const reading = collect(log.read(uid, { follow: true }))
    const before = bytesRead()
    for (const _ of numbersTo(100)) await log.append(uid, [line('more')])
    await log.append(uid, [result])
    expect(await reading).toHaveLength(1_101)
    // The log is half a megabyte: reading it again each time would make fifty.
    expect(bytesRead() - before).toBeLessThan(10 * 2 ** 20)
  })

  it('leaves out a line that the disk damaged', async () => {
    await log.append(uid, [line('1')])
    await log.close()
    appendFileSync(path(), '\0\0\0\0\n')
    await reopen()
    await log.append(uid, [line('2')])
    expect(sequences(await collect(log.read(uid)))).toEqual([1, 2])
  })

  it('holds no file of a finished task open, nor for a reader that waits', async () => {
    const openFiles = (): string[] =>
      readdirSync('/proc/self/fd')
        .flatMap((fd) => readlinkIfThere(`/proc/self/fd/${fd}`))
        .filter((file) => file.startsWith(directory))
    await log.append(uid, [line('x'), line('y')])
    expect(openFiles()).toHaveLength(1)
    const reader = log.read(uid)[Symbol.asyncIterator]()
    await reader.next()
    expect(openFiles()).toHaveLength(1)
    await log.append(uid, [result])
    await log.tail(uid)
    expect(openFiles()).toEqual([])
    expect((await reader.next()).value).toMatchObject({ sequence: 2 })
  })
})

function readlinkIfThere(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    // The descriptor of the listing itself is gone by now.
    return []
  }
}
