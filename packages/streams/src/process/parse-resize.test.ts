import { expect, it } from 'vitest'
import { parseResize } from './serve-process.js'

it.each<[string, string, { columns: number; rows: number } | undefined]>([
  ['as kubectl writes it', '{"Width":120,"Height":40}', { columns: 120, rows: 40 }],
  ['as the JavaScript client writes it', '{"width":120,"height":40}', { columns: 120, rows: 40 }],
  ['without a height', '{"Width":120}', undefined],
  ['of nothing', '{"Width":0,"Height":0}', undefined],
  ['too large for a terminal', '{"Width":70000,"Height":40}', undefined],
  ['that is no JSON', '{', undefined],
  ['that is no object', 'null', undefined],
])('a size %s', (_, text, size) => {
  expect(parseResize(text)).toEqual(size)
})
