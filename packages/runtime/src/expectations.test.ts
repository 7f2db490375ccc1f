import { describe, expect, it } from 'vitest'
import { Expectations } from './expectations.js'
import { steppedTimer } from './stepped-timer.test-suite.js'

describe('expectations', () => {
  it('lets a second raise through only after everything was seen', () => {
    const expectations = new Expectations(steppedTimer())
    expect(expectations.tryExpectCreations('p', 2)).toBe(true)
    expect(expectations.tryExpectCreations('p', 1)).toBe(false)
    expectations.lowerCreations('p')
    expect(expectations.isSatisfied('p')).toBe(false)
    expectations.lowerCreations('p')
    expect(expectations.tryExpectCreations('p', 1)).toBe(true)
  })

  it.each([0, -1])('refuses to expect %i creations', (count) => {
    expect(new Expectations(steppedTimer()).tryExpectCreations('p', count)).toBe(false)
  })

  it('follows deletions by uid, and ignores uids it does not know', () => {
    const expectations = new Expectations(steppedTimer())
    expectations.expectDeletion('p', 'u1')
    expectations.expectDeletion('p', '')
    expectations.clearDeletion('p', 'stranger')
    expect([expectations.isDeletionExpected('p', 'u1'), expectations.isSatisfied('p')]).toEqual([true, false])
    expectations.clearDeletion('p', 'u1')
    expect(expectations.isSatisfied('p')).toBe(true)
  })

  it('scenario 170: stays blocked for exactly five minutes without events', () => {
    const timer = steppedTimer()
    const expectations = new Expectations(timer)
    expectations.tryExpectCreations('p', 1)
    timer.advance(5 * 60_000)
    expect(expectations.isSatisfied('p')).toBe(false)
    timer.advance(1_000)
    expect(expectations.isSatisfied('p')).toBe(true)
  })

  it('scenario 170: a deletion raise refreshes the window', () => {
    const timer = steppedTimer()
    const expectations = new Expectations(timer)
    expectations.tryExpectCreations('p', 1)
    timer.advance(4 * 60_000)
    expectations.expectDeletion('p', 'u1')
    timer.advance(4 * 60_000)
    expect(expectations.isSatisfied('p')).toBe(false)
    expect(expectations.isDeletionExpected('p', 'u1')).toBe(true)
    timer.advance(61_000)
    expect(expectations.isDeletionExpected('p', 'u1')).toBe(false)
  })
})
