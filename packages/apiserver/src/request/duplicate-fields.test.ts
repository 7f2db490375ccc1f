import fc from 'fast-check'
import { expect, it } from 'vitest'
import { duplicateFields } from './duplicate-fields.js'

it.each<{ text: string; found: string[] }>([
  { text: '{}', found: [] },
  { text: '{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}', found: [] },
  { text: '{"a":1,"a":2}', found: ['a'] },
  { text: '{"a":{"b":1,"b":2,"b":3}}', found: ['a.b', 'a.b'] },
  { text: '{"a":[1,{"b":1 , "b" : 2}]}', found: ['a[1].b'] },
  { text: '{"a":[[{}],[{},{"b":1,"b":2}]]}', found: ['a[1][1].b'] },
  { text: '{"a":"\\"a\\":","b":"a","c":"\\\\"}', found: [] },
  { text: '{"\\u0061":1,"a":2}', found: ['a'] },
  { text: '{"a,b":1,"c":"]}","a,b":2}', found: ['a,b'] },
])('finds $found in $text', ({ text, found }) => {
  expect(duplicateFields(text)).toEqual(found)
})

it('finds nothing in what a serialiser wrote', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => duplicateFields(JSON.stringify(value, null, 1)).length === 0))
})
