import { expect, it } from 'vitest'
import { jsonPatch } from './index.js'

const target = Object.freeze({ a: 1, list: Object.freeze([1, 2, 3]), o: Object.freeze({ 'x/y': 1, 'm~n': 2 }) })

it.each<{ when: string; ops: unknown[]; becomes: unknown }>([
  { when: 'a member is added', ops: [{ op: 'add', path: '/b', value: 2 }], becomes: { ...target, b: 2 } },
  {
    when: 'an item is inserted',
    ops: [{ op: 'add', path: '/list/1', value: 9 }],
    becomes: { ...target, list: [1, 9, 2, 3] },
  },
  {
    when: 'an item is appended',
    ops: [{ op: 'add', path: '/list/-', value: 9 }],
    becomes: { ...target, list: [1, 2, 3, 9] },
  },
  { when: 'an item is removed', ops: [{ op: 'remove', path: '/list/0' }], becomes: { ...target, list: [2, 3] } },
  {
    when: 'an item is replaced',
    ops: [{ op: 'replace', path: '/list/2', value: 0 }],
    becomes: { ...target, list: [1, 2, 0] },
  },
  {
    when: 'a path is escaped',
    ops: [
      { op: 'remove', path: '/o/x~1y' },
      { op: 'remove', path: '/o/m~0n' },
    ],
    becomes: { ...target, o: {} },
  },
  {
    when: 'a member moves',
    ops: [{ op: 'move', from: '/a', path: '/o/a' }],
    becomes: { list: [1, 2, 3], o: { ...target.o, a: 1 } },
  },
  {
    when: 'a member is copied',
    ops: [
      { op: 'copy', from: '/list', path: '/copy' },
      { op: 'add', path: '/copy/-', value: 4 },
    ],
    becomes: { ...target, copy: [1, 2, 3, 4] },
  },
  {
    when: 'an absent member is replaced',
    ops: [{ op: 'replace', path: '/b', value: 2 }],
    becomes: { ...target, b: 2 },
  },
  { when: 'a value is left out', ops: [{ op: 'add', path: '/b' }], becomes: { ...target, b: null } },
  { when: 'a test holds', ops: [{ op: 'test', path: '/list', value: [1, 2, 3] }], becomes: target },
  { when: 'an absent value is tested for null', ops: [{ op: 'test', path: '/none', value: null }], becomes: target },
  { when: 'the whole document is replaced', ops: [{ op: 'replace', path: '', value: { z: 1 } }], becomes: { z: 1 } },
])('when $when', ({ ops, becomes }) => {
  expect(jsonPatch(target, ops)).toEqual(becomes)
})

it.each<{ when: string; ops: unknown; code: string; status: number }>([
  { when: 'a test fails', ops: [{ op: 'test', path: '/a', value: 2 }], code: 'Invalid', status: 422 },
  { when: 'what is to be removed is absent', ops: [{ op: 'remove', path: '/none' }], code: 'Invalid', status: 422 },
  {
    when: 'an item to be replaced is absent',
    ops: [{ op: 'replace', path: '/list/3', value: 1 }],
    code: 'Invalid',
    status: 422,
  },
  { when: 'an index is out of bounds', ops: [{ op: 'add', path: '/list/7', value: 1 }], code: 'Invalid', status: 422 },
  { when: 'an index is no number', ops: [{ op: 'remove', path: '/list/1x' }], code: 'Invalid', status: 422 },
  { when: 'a parent is absent', ops: [{ op: 'add', path: '/none/b', value: 1 }], code: 'Invalid', status: 422 },
  {
    when: 'the path leads to the prototype',
    ops: [{ op: 'add', path: '/constructor/prototype/x', value: 1 }],
    code: 'Invalid',
    status: 422,
  },
  { when: 'a value moves into itself', ops: [{ op: 'move', from: '/o', path: '/o/o' }], code: 'Invalid', status: 422 },
  { when: 'the operation is unknown', ops: [{ op: 'frob', path: '/a' }], code: 'Invalid', status: 422 },
  { when: 'the body is an object', ops: { op: 'add' }, code: 'BadRequest', status: 400 },
  { when: 'an operation has no path', ops: [{ op: 'add' }], code: 'Invalid', status: 422 },
  { when: 'an operation is no object', ops: [1], code: 'BadRequest', status: 400 },
  {
    when: 'there are more than 10,000 operations',
    ops: Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: 1 })),
    code: 'RequestEntityTooLarge',
    status: 413,
  },
  {
    when: 'a list is copied into itself thirty times',
    ops: Array.from({ length: 30 }, () => ({ op: 'copy', from: '/list', path: '/list/-' })),
    code: 'RequestEntityTooLarge',
    status: 413,
  },
])('refuses when $when', ({ ops, code, status }) => {
  expect(() => jsonPatch(target, ops)).toThrow(expect.objectContaining({ code, status }))
})

it('leaves a member called __proto__ a member', () => {
  const patched = jsonPatch({}, [{ op: 'add', path: '/__proto__', value: { polluted: true } }])
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  expect(Object.keys(patched as object)).toEqual(['__proto__'])
})
