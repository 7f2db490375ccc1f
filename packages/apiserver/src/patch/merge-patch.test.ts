import { expect, it } from 'vitest'
import { mergePatch } from './index.js'

it.each<{ when: string; target: unknown; patch: unknown; becomes: unknown }>([
  { when: 'a field is new', target: { a: 1 }, patch: { b: 2 }, becomes: { a: 1, b: 2 } },
  { when: 'a field is null', target: { a: 1, b: 2 }, patch: { a: null }, becomes: { b: 2 } },
  { when: 'a list is sent', target: { a: [1, 2] }, patch: { a: [3] }, becomes: { a: [3] } },
  {
    when: 'objects meet',
    target: { a: { b: 1, c: 2 } },
    patch: { a: { b: null, d: 3 } },
    becomes: { a: { c: 2, d: 3 } },
  },
  { when: 'an object replaces a scalar', target: { a: 1 }, patch: { a: { b: null, c: 1 } }, becomes: { a: { c: 1 } } },
  { when: 'nulls stand inside a list', target: {}, patch: { a: [null] }, becomes: { a: [null] } },
  { when: 'the patch is no object', target: { a: 1 }, patch: [1], becomes: [1] },
])('when $when', ({ target, patch, becomes }) => {
  expect(mergePatch(Object.freeze(target), Object.freeze(patch))).toEqual(becomes)
})

it('cannot reach the prototype', () => {
  const merged = mergePatch({}, JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"x":1}}}'))
  expect(Object.getPrototypeOf(merged)).toBe(Object.prototype)
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  expect(JSON.stringify(merged)).toContain('"__proto__":{"polluted":true}')
})
