import { appendFileSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TaskEvent, TaskEventBody } from '@corral/protocol'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type EventLog, fileEventLog } from './event-log.js'

let directory: string
let log: EventLog
const uid = '0b9d3a52-0000-4000-8000-000000000001'
const line = (text: string): TaskEventBody => ({ type: 'output', stream: 'stdout', text })
const result: TaskEventBody = { type: 'result', status: 'SUCCEEDED' }

async function collect(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const all: TaskEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

const openLog = (): EventLog => fileEventLog({ directory, now: () => new Date('2026-01-01T00:00:00Z') })

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-events-'))
  log = openLog()
})

afterEach(async () => {
  await log.close()
  rmSync(directory, { recursive: true, force: true })
})

it('numbers events from 1 without gaps, also when appends overlap', async () => {
  await Promise.all(Array.from({ length: 20 }, (_, index) => log.append(uid, [line(`${index}a`), line(`${index}b`)])))
  const events = await collect(log.read(uid))
  expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
})

it('reads from any sequence', async () => {
  await log.append(uid, [line('1'), line('2'), line('3')])
  expect((await collect(log.read(uid, { after: 2 }))).map(({ sequence }) => sequence)).toEqual([3])
  expect(await collect(log.read(uid, { after: 3 }))).toEqual([])
})

it('follows live and ends after the result', async () => {
  await log.append(uid, [line('before')])
  const reading = collect(log.read(uid, { follow: true }))
  await log.append(uid, [line('while')])
  await log.append(uid, [result])
  expect((await reading).map(({ type }) => type)).toEqual(['output', 'output', 'result'])
})

it('ends its followers, now and later, where the result found no room', async () => {
  await log.append(uid, [line('before')])
  const reading = collect(log.read(uid, { follow: true }))
  log.end(uid)
  expect((await reading).map(({ type }) => type)).toEqual(['output'])
  expect(await collect(log.read(uid, { follow: true }))).toHaveLength(1)
})

it('holds each stage event once, however often it is reported', async () => {
  const started: TaskEventBody = { type: 'stage', stage: 'setup', state: 'started' }
  await log.append(uid, [started, line('a')])
  await log.append(uid, [started])
  await log.close()
  log = openLog()
  await log.append(uid, [started, { ...started, state: 'finished' }, line('a')])
  const events = await collect(log.read(uid))
  expect(events.map((event) => (event.type === 'stage' ? event.state : event.type))).toEqual([
    ...['started', 'output', 'finished', 'output'],
  ])
  expect(events.at(-1)?.sequence).toBe(4)
})

it('D-9: goes on with the next sequence after a restart, and remembers what came from the agent', async () => {
  await log.append(uid, [line('platform')])
  await log.append(uid, [line('a'), line('b')], 'agent')
  await log.close()
  log = openLog()
  expect(await log.tail(uid)).toEqual({ sequence: 3, agentEvents: 2, finished: false })
  await log.append(uid, [result])
  expect(await log.tail(uid)).toEqual({ sequence: 4, agentEvents: 2, finished: true })
})

it('cuts off a line that a crash tore', async () => {
  await log.append(uid, [line('whole'), line('torn')])
  await log.close()
  const path = join(directory, uid, 'events.ndjson')
  truncateSync(path, readFileSync(path).length - 5)
  log = openLog()
  await log.append(uid, [line('next')])
  const events = await collect(log.read(uid))
  expect(events.map((event) => [event.sequence, (event as { text?: string }).text])).toEqual([
    [1, 'whole'],
    [2, 'next'],
  ])
})

it('does not show a half-written line to a reader', async () => {
  await log.append(uid, [line('whole')])
  appendFileSync(join(directory, uid, 'events.ndjson'), '{"sequence":2,"ty')
  expect(await collect(log.read(uid))).toHaveLength(1)
})

it('stops following when the reader gives up', async () => {
  const abort = new AbortController()
  const reading = collect(log.read(uid, { follow: true, signal: abort.signal }))
  abort.abort()
  expect(await reading).toEqual([])
})

it('refuses a uid that is a path', async () => {
  await expect(log.append('../x', [result])).rejects.toMatchObject({ code: 'BadRequest' })
})

it('holds no file of a finished task open', async () => {
  const openFiles = (): string[] =>
    readdirSync('/proc/self/fd')
      .flatMap((fd) => readlinkIfThere(`/proc/self/fd/${fd}`))
      .filter((path) => path.startsWith(directory))
  await log.append(uid, [line('x')])
  expect(openFiles()).toHaveLength(1)
  await log.append(uid, [result])
  await log.tail(uid)
  expect(openFiles()).toEqual([])
  expect(await collect(log.read(uid))).toHaveLength(2)
})

function readlinkIfThere(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    // The descriptor of the listing itself is gone by now.
    return []
  }
}
