import type { EventsV1Event } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { EventSeries, type SeriesWrite } from './event-series.js'

const event = (change: Partial<EventsV1Event> = {}): EventsV1Event => ({
  metadata: { name: 'box.1', namespace: 'default' },
  eventTime: '2026-01-01T00:00:00.000000Z',
  regarding: { kind: 'Sandbox', name: 'box', uid: 'u', resourceVersion: '7' },
  reportingController: 'sandbox-controller',
  type: 'Warning',
  action: 'Reconciling',
  reason: 'PodFailed',
  note: 'no',
  ...change,
})

function series(): { sink: EventSeries; pass(minutes: number): void } {
  let nowMs = Date.parse('2026-01-01T00:00:00Z')
  return {
    sink: new EventSeries({ now: () => new Date(nowMs) }),
    pass(minutes) {
      nowMs += minutes * 60_000
    },
  }
}

const told = (writes: readonly SeriesWrite[]): string[] =>
  writes.map((write) => (write.kind === 'create' ? 'create' : `count ${write.series.count}`))

describe('repeated events', () => {
  it('are created once, become a series with the second and are then only counted', () => {
    const { sink } = series()
    expect([1, 2, 3, 4].map(() => told(sink.record(event())))).toEqual([['create'], ['count 2'], [], []])
    expect(sink.isOpen).toBe(true)
    expect(told(sink.settle(true))).toEqual(['count 4'])
    expect(sink.isOpen).toBe(false)
  })

  it('are counted on the name of the first', () => {
    const { sink, pass } = series()
    sink.record(event())
    pass(1)
    const [write] = sink.record(event({ metadata: { name: 'box.2', namespace: 'default' } }))
    expect(write).toMatchObject({
      kind: 'count',
      event: { metadata: { name: 'box.1' } },
      series: { count: 2, lastObservedTime: '2026-01-01T00:01:00.000000Z' },
    })
  })

  it.each([
    { what: 'another reason', change: { reason: 'PodSucceeded' } },
    { what: 'another action', change: { action: 'Deleting' } },
    { what: 'another reporter', change: { reportingController: 'sandboxclaim-controller' } },
    {
      what: 'a later version of the object',
      change: { regarding: { kind: 'Sandbox', uid: 'u', resourceVersion: '8' } },
    },
  ])('$what is another event', ({ change }) => {
    const { sink } = series()
    sink.record(event())
    expect(told(sink.record(event(change)))).toEqual(['create'])
  })

  it('are over after six quiet minutes, and their count is written then', () => {
    const { sink, pass } = series()
    for (let times = 0; times < 5; times += 1) sink.record(event())
    pass(5)
    expect(told(sink.settle(false))).toEqual([])
    pass(1)
    expect(told(sink.settle(false))).toEqual(['count 5'])
    expect(told(sink.record(event()))).toEqual(['create'])
  })

  it('that never end are written every half hour', () => {
    const { sink, pass } = series()
    const seen: string[] = []
    for (let minute = 0; minute <= 60; minute += 5) {
      seen.push(...told(sink.record(event())))
      pass(5)
    }
    expect(seen).toEqual(['create', 'count 2', 'count 8'])
  })

  it('keep no more than so many in mind, and lose no count by it', () => {
    const { sink } = series()
    for (let times = 0; times < 3; times += 1) sink.record(event())
    const writes = Array.from({ length: 4_096 }, (_, index) =>
      sink.record(event({ regarding: { kind: 'Sandbox', uid: `u${index}`, resourceVersion: '1' } })),
    ).flat()
    expect(told(writes).filter((write) => write !== 'create')).toEqual(['count 3'])
    expect(sink.isOpen).toBe(false)
  })
})
