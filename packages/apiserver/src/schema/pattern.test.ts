import { expect, it } from 'vitest'
import { isPlainPattern, loadPatternEngine, patternMatcher } from './pattern.js'

const QUANTITY =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$'

it.each<{ pattern: string; plain: boolean }>([
  { pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', plain: true },
  { pattern: QUANTITY, plain: true },
  { pattern: '^\\d{1,3}$', plain: true },
  { pattern: '(a*)*', plain: false },
  { pattern: '((a+)b?)+', plain: false },
  { pattern: '(?i)abc', plain: false },
  { pattern: '(?=a)', plain: false },
  { pattern: 'a.c', plain: false },
  { pattern: '[^a]', plain: false },
  { pattern: '\\s', plain: false },
  { pattern: '(a)\\1', plain: false },
  { pattern: 'a*?', plain: false },
  { pattern: '(a', plain: false },
])('$pattern is plain: $plain', ({ pattern, plain }) => {
  expect(isPlainPattern(pattern)).toBe(plain)
})

it('refuses what RE2 refuses', async () => {
  await loadPatternEngine()
  expect(() => patternMatcher('(a)\\1')).toThrow(/escape/)
  expect(() => patternMatcher('(?=a)')).toThrow(/unsupported Perl syntax/)
  expect(patternMatcher('(?i)^ab.$')('ABc')).toBe(true)
})
