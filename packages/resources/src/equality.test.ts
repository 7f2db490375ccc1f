import { describe, expect, it } from 'vitest'
import { deepFreeze, structuredCopy } from './copies.js'
import { semanticEqual } from './equality.js'

describe('semanticEqual', () => {
  it.each<{ that: string; a: unknown; b: unknown; equal: boolean }>([
    { that: 'members in another order', a: { x: 1, y: [1] }, b: { y: [1], x: 1 }, equal: true },
    { that: 'absent, null and an empty list', a: { x: null, y: [] }, b: {}, equal: true },
    { that: 'an empty map and none', a: { labels: {} }, b: {}, equal: true },
    { that: 'an emptyDir and none', a: { emptyDir: {} }, b: {}, equal: false },
    { that: 'quantities by value', a: { limits: { cpu: '0.5' } }, b: { limits: { cpu: '500m' } }, equal: true },
    { that: 'a quantity as number', a: { requests: { cpu: 1 } }, b: { requests: { cpu: '1' } }, equal: true },
    { that: 'different quantities', a: { limits: { cpu: '1' } }, b: { limits: { cpu: '2' } }, equal: false },
    { that: 'a size limit', a: { sizeLimit: '1Gi' }, b: { sizeLimit: '1024Mi' }, equal: true },
    { that: 'texts that only look like quantities', a: { value: '0.5' }, b: { value: '500m' }, equal: false },
    { that: 'lists in another order', a: [1, 2], b: [2, 1], equal: false },
    { that: 'a list and an object', a: [], b: { x: 1 }, equal: false },
    { that: 'false and absent', a: { x: false }, b: {}, equal: false },
    { that: 'zero and absent', a: { x: 0 }, b: {}, equal: false },
  ])('$that: $equal', ({ a, b, equal }) => {
    expect(semanticEqual(a, b)).toBe(equal)
    expect(semanticEqual(b, a)).toBe(equal)
  })
})

it('copies deeply, without undefined and without touching prototypes', () => {
  const source = JSON.parse('{"a":{"b":[1,{"c":2}]},"__proto__":{"polluted":true}}') as Record<string, unknown>
  const copy: Record<string, unknown> = structuredCopy({ ...source, gone: undefined })
  expect(copy).toEqual({ ...source })
  expect(Object.hasOwn(copy, 'gone')).toBe(false)
  expect(copy.a).not.toBe(source.a)
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
})

it('freezes all the way down', () => {
  const frozen = deepFreeze({ a: { b: [{ c: 1 }] } })
  expect(Object.isFrozen(frozen.a.b[0])).toBe(true)
})
