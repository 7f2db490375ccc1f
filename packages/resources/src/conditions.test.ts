import { describe, expect, it } from 'vitest'
import { findCondition, isConditionTrue, removeCondition, setCondition } from './conditions.js'
import type { Condition } from './meta.js'

const now = new Date('2026-11-15T10:00:00.789Z')
const before = '2026-11-15T09:00:00Z'
const ready: Condition = {
  type: 'Ready',
  status: 'False',
  reason: 'Starting',
  message: 'wait',
  lastTransitionTime: before,
}
const other: Condition = { ...ready, type: 'Other' }

describe('setCondition', () => {
  it('appends a new type with the time of now', () => {
    const { lastTransitionTime: _time, ...update } = ready
    expect(setCondition([other], update, now)).toEqual([
      other,
      { ...ready, lastTransitionTime: '2026-11-15T10:00:00Z' },
    ])
  })

  it('takes the supplied time for a flip', () => {
    const supplied = '2026-11-15T09:30:00Z'
    const [flipped] = setCondition([ready], { ...ready, status: 'True', lastTransitionTime: supplied }, now)
    expect(flipped?.lastTransitionTime).toBe(supplied)
  })

  it('keeps the time and the position when only words change', () => {
    const update = {
      type: 'Ready',
      status: 'False',
      reason: 'Pulling',
      message: 'image',
      observedGeneration: 2,
    } as const
    expect(setCondition([ready, other], update, now)).toEqual([{ ...update, lastTransitionTime: before }, other])
  })

  it('answers the same array when nothing changed, and never changes its input', () => {
    const conditions = Object.freeze([Object.freeze({ ...ready })]) as Condition[]
    expect(setCondition(conditions, { ...ready, lastTransitionTime: 'ignored' }, now)).toBe(conditions)
    expect(setCondition(conditions, { ...ready, status: 'True' }, now)).not.toBe(conditions)
  })
})

it('finds, asks and removes by type', () => {
  expect(findCondition([other, ready], 'Ready')).toBe(ready)
  expect(findCondition(undefined, 'Ready')).toBeUndefined()
  expect(isConditionTrue([ready], 'Ready')).toBe(false)
  expect(isConditionTrue([{ ...ready, status: 'True' }], 'Ready')).toBe(true)
  expect(removeCondition([other, ready], 'Other')).toEqual([ready])
  const conditions = [ready]
  expect(removeCondition(conditions, 'Missing')).toBe(conditions)
})
