import { describe, expect, it } from 'vitest'
import { internSet, isInterned, subtractInterned, unionInterned } from './interned-sets.js'

const place = {}

describe('interned sets', () => {
  it('are one object however their keys were ordered, frozen and sorted', () => {
    const one = internSet({ 'f:b': place, 'f:a': { '.': place, 'f:c': place } })
    expect(internSet({ 'f:a': { '.': place, 'f:c': place }, 'f:b': place })).toBe(one)
    expect(Object.keys(one)).toEqual(['f:a', 'f:b'])
    expect(Object.isFrozen(one['f:a'])).toBe(true)
  })

  it('give the same object for the same operation', () => {
    const a = internSet({ 'f:a': place, 'f:b': place })
    const b = internSet({ 'f:b': place, 'f:c': place })
    expect(unionInterned(a, b)).toEqual({ 'f:a': place, 'f:b': place, 'f:c': place })
    expect(unionInterned(a, b)).toBe(unionInterned(a, b))
    expect(subtractInterned(a, b)).toEqual({ 'f:a': place })
    expect(subtractInterned(a, a)).toBeUndefined()
    expect(subtractInterned(a, internSet({ 'f:a': place, 'f:b': place }))).toBeUndefined()
    expect(unionInterned(undefined, a)).toBe(a)
  })

  it('leave sets that name an owner to themselves: they are hardly ever met again', () => {
    const set = internSet({ 'f:metadata': { 'f:ownerReferences': { 'k:{"uid":"1"}': place } } })
    expect(isInterned(set)).toBe(false)
    expect(unionInterned(set, internSet({ 'f:spec': place }))).toEqual({ ...set, 'f:spec': place })
  })

  it('stay correct when more kinds of sets come than are kept', () => {
    const first = internSet({ 'f:first': place })
    for (let index = 0; index < 5_000; index += 1) internSet({ [`f:field-${index}`]: place })
    const again = internSet({ 'f:first': place })
    expect(again).toEqual(first)
    expect(subtractInterned(again, first)).toBeUndefined()
  })
})
