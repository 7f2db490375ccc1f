import { describe, expect, it } from 'vitest'
import { hostUidPool, numberPool, podAddress, podAddressIndex } from './allocator.js'

describe('numberPool', () => {
  it('begins where it is told and comes round to the first', () => {
    const pool = numberPool(1, 3, 3)
    expect([pool.take(), pool.take(), pool.take()]).toEqual([3, 1, 2])
  })

  it('gives the users of two nodes of one machine different numbers', () => {
    const firsts = new Set(Array.from({ length: 20 }, () => hostUidPool().take()))
    expect(firsts.size).toBeGreaterThan(15)
  })

  it('reuses a number as late as possible', () => {
    const pool = numberPool(1, 3)
    expect([pool.take(), pool.take()]).toEqual([1, 2])
    pool.release(1)
    expect([pool.take(), pool.take()]).toEqual([3, 1])
    expect(() => pool.take()).toThrow(/no number is left/)
  })

  it('skips what an earlier process gave out and what is ruled out', () => {
    const pool = numberPool(1, 9)
    pool.hold(1)
    pool.hold(4)
    expect(pool.take((value) => value === 5)).toBe(6)
  })

  it('frees a number that was held twice only after both are done', () => {
    const pool = numberPool(1, 1)
    pool.hold(1)
    pool.hold(1)
    pool.release(1)
    expect(() => pool.take()).toThrow('no number is left between 1 and 1')
    pool.release(1)
    expect(pool.take()).toBe(1)
  })
})

it('numbers pod addresses from 100.64.0.0 and back', () => {
  expect(podAddress(2)).toBe('100.64.0.2')
  expect(podAddress(300)).toBe('100.64.1.44')
  expect(podAddressIndex(podAddress(4_000_000))).toBe(4_000_000)
})
