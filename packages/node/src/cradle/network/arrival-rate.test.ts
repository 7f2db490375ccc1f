import { describe, expect, it } from 'vitest'
import { ArrivalRate } from './arrival-rate.js'

function rateAt(clock: { nowMs: number }): { takes(count: number): number } {
  const rate = new ArrivalRate({ burst: 10, perSecond: 5 }, () => clock.nowMs)
  return { takes: (count) => Array.from({ length: count }, () => rate.take()).filter(Boolean).length }
}

describe('the rate at which arrivals are looked at', () => {
  it.each([
    ['a burst is taken whole', { first: 10, waitMs: 0, later: 0 }, [10, 0]],
    ['what is beyond the burst is not', { first: 12, waitMs: 0, later: 1 }, [10, 0]],
    ['a second later as many as a second allows', { first: 12, waitMs: 1_000, later: 8 }, [10, 5]],
    ['a long rest gives one burst, not more', { first: 12, waitMs: 3_600_000, later: 30 }, [10, 10]],
    ['parts of a second add up', { first: 10, waitMs: 200, later: 3 }, [10, 1]],
  ])('%s', (_sentence, { first, waitMs, later }, expected) => {
    const clock = { nowMs: 0 }
    const rate = rateAt(clock)
    const before = rate.takes(first)
    clock.nowMs += waitMs
    expect([before, rate.takes(later)]).toEqual(expected)
  })
})
