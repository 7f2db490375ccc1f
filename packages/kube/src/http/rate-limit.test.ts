import { describe, expect, it } from 'vitest'
import { RateLimit } from './rate-limit.js'

describe('a rate limit', () => {
  const limited = () => {
    const clock = { ms: 0 }
    return { clock, limit: new RateLimit({ perSecond: 10, burst: 3 }, () => clock.ms) }
  }

  it('lets a burst through, then spaces calls evenly', () => {
    const { limit } = limited()
    expect(Array.from({ length: 5 }, () => limit.reserveMs())).toEqual([0, 0, 0, 100, 200])
  })

  it('fills up again with time, never beyond the burst', () => {
    const { clock, limit } = limited()
    for (let call = 0; call < 3; call += 1) limit.reserveMs()
    clock.ms = 60_000
    expect(Array.from({ length: 4 }, () => limit.reserveMs())).toEqual([0, 0, 0, 100])
  })

  it('rejects a waiting call with the reason of its signal', async () => {
    const { limit } = limited()
    for (let call = 0; call < 3; call += 1) limit.reserveMs()
    const stop = new AbortController()
    const waiting = limit.take(stop.signal)
    const reason = new Error('stopping')
    stop.abort(reason)
    await expect(waiting).rejects.toBe(reason)
  })
})
