import type { TaskEvent, TaskEventBody } from '@corral/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EventLog } from './event-log.js'

export const uid = '0b9d3a52-0000-4000-8000-000000000001'
export const line = (text: string): TaskEventBody => ({ type: 'output', stream: 'stdout', text })
export const result: TaskEventBody = { type: 'result', status: 'SUCCEEDED' }

export async function collect(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const all: TaskEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

export const numbersTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1)
export const sequences = (events: readonly TaskEvent[]): number[] => events.map(({ sequence }) => sequence)

/** What every event log must do, whatever it keeps events in. */
export function describeEventLog(name: string, open: () => EventLog): void {
  describe(`event log: ${name}`, () => {
    let log: EventLog
    beforeEach(() => {
      log = open()
    })
    afterEach(() => log.close())

    it('numbers events from 1 without gaps, also when appends overlap', async () => {
      await Promise.all(numbersTo(20).map((index) => log.append(uid, [line(`${index}a`), line(`${index}b`)])))
      expect(sequences(await collect(log.read(uid)))).toEqual(numbersTo(40))
    })

    it('gives back each event as it was, with its sequence and time', async () => {
      const events: TaskEventBody[] = [
        line('äöü \u2028 "quoted"\nsecond line'),
        { type: 'stage', stage: 'agent', state: 'started' },
      ]
      await log.append(uid, events)
      const stored = await collect(log.read(uid))
      expect(stored).toEqual(
        events.map((event, index) => ({ ...event, sequence: index + 1, time: '2026-01-01T00:00:00.000Z' })),
      )
    })

    it('reads from any sequence', async () => {
      await log.append(uid, [line('1'), line('2'), line('3')])
      expect(sequences(await collect(log.read(uid, { after: 2 })))).toEqual([3])
      expect(await collect(log.read(uid, { after: 3 }))).toEqual([])
      expect(await collect(log.read(uid, { after: 99 }))).toEqual([])
    })

    it('has nothing to read before the first append', async () => {
      expect(await collect(log.read(uid))).toEqual([])
      expect(await log.tail(uid)).toEqual({ sequence: 0, agentEvents: 0, finished: false })
    })

    it('is finished by a result that comes together with the last lines', async () => {
      expect(await log.append(uid, [line('the last line'), result])).toMatchObject({ sequence: 2, finished: true })
      expect(await log.tail(uid)).toMatchObject({ finished: true })
    })

    it('an empty append changes nothing', async () => {
      expect(await log.append(uid, [])).toEqual({ sequence: 0, agentEvents: 0, finished: false })
      expect(await collect(log.read(uid))).toEqual([])
    })

    it('keeps the logs of tasks apart', async () => {
      await log.append(uid, [line('mine')])
      await log.append('another', [result])
      expect(await log.tail(uid)).toMatchObject({ sequence: 1, finished: false })
      expect(await log.tail('another')).toMatchObject({ sequence: 1, finished: true })
    })

    it('follows live and ends after the result', async () => {
      await log.append(uid, [line('before')])
      const reading = collect(log.read(uid, { follow: true }))
      await log.append(uid, [line('while')])
      await log.append(uid, [result])
      expect((await reading).map(({ type }) => type)).toEqual(['output', 'output', 'result'])
      expect(await collect(log.read(uid, { follow: true }))).toHaveLength(3)
    })

    it('many followers, begun at different times, each get everything once and in order', async () => {
      const readers: Promise<TaskEvent[]>[] = []
      for (const index of numbersTo(60)) {
        readers.push(collect(log.read(uid, { follow: true })))
        await Promise.all([log.append(uid, [line(`${index}`)]), log.append(uid, [line(`${index}'`)], 'agent')])
      }
      await log.append(uid, [result])
      for (const reader of readers) expect(sequences(await reader)).toEqual(numbersTo(121))
    })

    it('a slow reader misses nothing, however far it falls behind', async () => {
      const reader = log.read(uid, { follow: true })[Symbol.asyncIterator]()
      const first = reader.next()
      await log.append(uid, [line('first')])
      expect((await first).value).toMatchObject({ sequence: 1 })
      const batch = Array.from({ length: 40 }, () => line('x'.repeat(4_000)))
      for (const _ of numbersTo(10)) await log.append(uid, batch)
      const second = await reader.next()
      expect(second.value).toMatchObject({ sequence: 2 })
      for (const _ of numbersTo(5)) await log.append(uid, [line('late')])
      await log.append(uid, [result])
      const rest: number[] = []
      for (let next = await reader.next(); !next.done; next = await reader.next()) rest.push(next.value.sequence)
      expect([1, 2, ...rest]).toEqual(numbersTo(407))
    })

    it('follows from a sequence that is yet to come', async () => {
      const reading = collect(log.read(uid, { after: 3, follow: true }))
      await log.append(uid, [line('1'), line('2')])
      await log.append(uid, [line('3'), line('4')])
      await log.append(uid, [result])
      expect(sequences(await reading)).toEqual([4, 5])
    })

    it('a reader that is not a follower gets what is there and ends', async () => {
      await log.append(uid, [line('1')])
      expect(await collect(log.read(uid))).toHaveLength(1)
    })

    it('ends its followers, now and later, where the result found no room', async () => {
      await log.append(uid, [line('before')])
      const reading = collect(log.read(uid, { follow: true }))
      log.end(uid)
      expect((await reading).map(({ type }) => type)).toEqual(['output'])
      expect(await collect(log.read(uid, { follow: true }))).toHaveLength(1)
    })

    it.each<{ what: string; act: (log: EventLog, abort: AbortController) => unknown }>([
      { what: 'the record is removed', act: (log) => log.remove(uid) },
      { what: 'the log is closed', act: (log) => log.close() },
      { what: 'the reader gives up', act: (_, abort) => abort.abort() },
    ])('lets its followers go when $what', async ({ act }) => {
      await log.append(uid, [line('before')])
      const abort = new AbortController()
      const reader = log.read(uid, { follow: true, signal: abort.signal })[Symbol.asyncIterator]()
      expect((await reader.next()).value).toMatchObject({ sequence: 1 })
      const waiting = reader.next()
      await act(log, abort)
      expect(await waiting).toMatchObject({ done: true })
    })

    it('a reader that has given up gets nothing more, even of what is there', async () => {
      await log.append(uid, [line('1'), line('2'), line('3')])
      const abort = new AbortController()
      const seen: number[] = []
      for await (const { sequence } of log.read(uid, { signal: abort.signal })) {
        seen.push(sequence)
        abort.abort()
      }
      expect(seen).toEqual([1])
      expect(await collect(log.read(uid, { follow: true, signal: abort.signal }))).toEqual([])
    })

    it('holds each stage event once, however often it is reported', async () => {
      const started: TaskEventBody = { type: 'stage', stage: 'setup', state: 'started' }
      await log.append(uid, [started, line('a')])
      await log.append(uid, [started, { ...started, state: 'finished' }, line('a')])
      const events = await collect(log.read(uid))
      expect(events.map((event) => (event.type === 'stage' ? event.state : event.type))).toEqual([
        ...['started', 'output', 'finished', 'output'],
      ])
      expect(events.at(-1)?.sequence).toBe(4)
    })

    it('counts what came from the agent', async () => {
      await log.append(uid, [line('platform')])
      expect(await log.append(uid, [line('a'), line('b')], 'agent')).toMatchObject({ sequence: 3, agentEvents: 2 })
      expect(await log.tail(uid)).toEqual({ sequence: 3, agentEvents: 2, finished: false })
    })

    it('begins anew after a removal', async () => {
      await log.append(uid, [line('a'), { type: 'stage', stage: 'agent', state: 'started' }, result])
      await log.remove(uid)
      await log.append(uid, [{ type: 'stage', stage: 'agent', state: 'started' }])
      expect(sequences(await collect(log.read(uid)))).toEqual([1])
    })

    it('refuses a uid that is a path', async () => {
      const refusal = { code: 'BadRequest', message: expect.stringContaining('is not a task uid') }
      await expect(log.append('../x', [result])).rejects.toMatchObject(refusal)
      await expect(collect(log.read('../x'))).rejects.toMatchObject(refusal)
    })
  })
}
