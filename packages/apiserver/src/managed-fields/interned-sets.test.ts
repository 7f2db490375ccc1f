import { describe, expect, it } from 'vitest'
import { type FieldSet, subtractSets, unionSets } from './field-set.js'
import { internSet, isInterned, orderedSet, subtractInterned, unionInterned } from './interned-sets.js'

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

  it('are the parts of sets that name an owner', () => {
    const of = (uid: string): FieldSet =>
      internSet({
        'f:spec': { 'f:b': place, 'f:a': place },
        'f:metadata': { 'f:ownerReferences': { [`k:{"uid":"${uid}"}`]: place }, 'f:labels': { 'f:x': place } },
      })
    expect(of('1')['f:spec']).toBe(of('2')['f:spec'])
    expect(of('1')['f:metadata']?.['f:labels']).toBe(of('2')['f:metadata']?.['f:labels'])
    expect(Object.keys(orderedSet(of('1')))).toEqual(['f:metadata', 'f:spec'])
  })

  it('give what the operations on plain sets give, with and without owners', () => {
    let seed = 20_261_116
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor((seed / 2_147_483_648) * below)
    }
    const names = ['f:a', 'f:b', 'f:metadata', 'f:ownerReferences', 'k:{"uid":"1"}', 'k:{"uid":"2"}', 'f:spec']
    const make = (depth: number): FieldSet => {
      const set: Record<string, FieldSet> = {}
      for (let count = random(4); depth > 0 && count > 0; count--) set[names[random(names.length)]!] = make(depth - 1)
      if (Object.keys(set).length > 0 && random(2) === 0) set['.'] = place
      return set
    }
    for (let round = 0; round < 2_000; round++) {
      const [a, b] = [make(4), make(4)]
      expect(unionInterned(internSet(a), internSet(b))).toEqual(unionSets(a, b))
      expect(subtractInterned(internSet(a), internSet(b))).toEqual(subtractSets(a, b))
    }
  })

  it('stay correct when more kinds of sets come than are kept', () => {
    const first = internSet({ 'f:first': place })
    for (let index = 0; index < 5_000; index += 1) internSet({ [`f:field-${index}`]: place })
    const again = internSet({ 'f:first': place })
    expect(again).toEqual(first)
    expect(subtractInterned(again, first)).toBeUndefined()
  })
})
