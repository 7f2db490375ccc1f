import { describe, expect, it } from 'vitest'
import { EventRing, type StoreEvent } from './event-ring.js'

const event = (rv: number, options: { atMs?: number; sizeBytes?: number } = {}): StoreEvent => ({
  rv,
  type: 'ADDED',
  namespace: 'ns',
  name: `n${rv}`,
  object: {},
  previous: undefined,
  committedAtMs: options.atMs ?? 0,
  sizeBytes: options.sizeBytes ?? 1_000,
  frames: [],
})
const MINUTE = 60_000

describe('EventRing', () => {
  it('knows nothing at or below its floor, and everything after it', () => {
    const ring = new EventRing(10)
    for (const rv of [11, 13, 17]) ring.push(event(rv))
    expect(ring.after(9)).toBeUndefined()
    expect(ring.after(10)?.map(({ rv }) => rv)).toEqual([11, 13, 17])
    expect(ring.after(13)?.map(({ rv }) => rv)).toEqual([17])
    expect(ring.after(99)).toEqual([])
  })

  it.each<{ what: string; count: number; apartMs: number; sizeBytes: number; keeps: number }>([
    { what: 'ten thousand old events', count: 30_000, apartMs: MINUTE, sizeBytes: 1_000, keeps: 10_000 },
    { what: 'five minutes of many events', count: 30_000, apartMs: 10, sizeBytes: 1_000, keeps: 30_000 },
    { what: 'no more than 64 MiB', count: 1_000, apartMs: 10, sizeBytes: 1024 * 1024, keeps: 64 },
    { what: 'the newest event however large', count: 3, apartMs: 10, sizeBytes: 100 * 1024 * 1024, keeps: 1 },
  ])('keeps $what', ({ count, apartMs, sizeBytes, keeps }) => {
    const ring = new EventRing(0)
    for (let rv = 1; rv <= count; rv++) ring.push(event(rv, { atMs: rv * apartMs, sizeBytes }))
    expect(ring.after(ring.floorRv)).toHaveLength(keeps)
    expect(ring.floorRv).toBe(count - keeps)
    expect(ring.after(ring.floorRv - 1)).toBeUndefined()
  })
})
