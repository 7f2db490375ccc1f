import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mergeDiff } from './merge-diff.js'

/** RFC 7386. */
function apply(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> =
    typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = apply(result[key], value)
  }
  return result
}

const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean())
const json = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(leaf, { maxLength: 3 }), tie('object')),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), tie('value'), { maxKeys: 3 }),
})).object as fc.Arbitrary<Record<string, unknown>>

describe('merge patch', () => {
  it('turns the one into the other, whatever they are', () => {
    fc.assert(
      fc.property(json, json, (before, after) => {
        expect(apply(before, mergeDiff(before, after) ?? {})).toEqual(after)
      }),
    )
  })

  it('is absent between equals', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(mergeDiff(value, structuredClone(value))).toBeUndefined()
      }),
    )
  })

  it.each([
    { when: 'a key goes', before: { a: '1', b: '2' }, after: { b: '2' }, patch: { a: null } },
    { when: 'a list changes', before: { a: [1, 2] }, after: { a: [2] }, patch: { a: [2] } },
    { when: 'nothing but undefined differs', before: { a: 1 }, after: { a: 1, b: undefined }, patch: undefined },
  ])('when $when', ({ before, after, patch }) => {
    expect(mergeDiff(before, after)).toEqual(patch)
  })
})
