import { expect, it } from 'vitest'
import { parseYamlText } from './yaml-body.js'

it.each<{ text: string; value: unknown }>([
  { text: 'a: yes\nb: off', value: { a: true, b: false } },
  { text: 'mode: 0644\nother: 0o644', value: { mode: 0o644, other: 0o644 } },
  { text: 'a: 12:30\nb: 2026-01-01T00:00:00Z\nc: 1.2.3', value: { a: '12:30', b: '2026-01-01T00:00:00Z', c: '1.2.3' } },
  { text: 'a: "yes"\nb: ~\nc: 1.5', value: { a: 'yes', b: null, c: 1.5 } },
  { text: 'base: &b {x: 1}\nmore: {<<: *b, z: 2}', value: { base: { x: 1 }, more: { x: 1, z: 2 } } },
  { text: 'a: 1\n---\na: 2\n', value: { a: 1 } },
  { text: '# nothing\n', value: null },
])('reads $text', ({ text, value }) => {
  expect(parseYamlText(text)).toEqual(value)
})

it('tells which keys stand twice, and keeps the last', () => {
  const duplicates: string[] = []
  const text = 'data:\n  a: "1"\n  a: "2"\nlist:\n- {x: 1}\n- {x: 1, x: {z: 1, z: 2}}\n'
  expect(parseYamlText(text, duplicates)).toEqual({ data: { a: '2' }, list: [{ x: 1 }, { x: { z: 2 } }] })
  expect(duplicates).toEqual(['data.a', 'list[1].x', 'list[1].x.z'])
})

const levels = Array.from({ length: 12 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(10).fill(`*l${i}`).join(', ')}]`)

it.each([
  { what: 'broken text', text: 'a: [\n' },
  { what: 'tabs', text: 'a:\n\tb: 1' },
  { what: 'a bomb of aliases', text: `l0: &l0 [x]\n${levels.join('\n')}` },
])('refuses $what with 400', ({ text }) => {
  expect(() => parseYamlText(text)).toThrow(expect.objectContaining({ code: 'BadRequest' }))
})
