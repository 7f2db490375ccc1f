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
  { pattern: '^(a|a)*$', plain: false },
  { pattern: '^(aa?)*$', plain: false },
  { pattern: '^(a?a?)*$', plain: false },
  { pattern: `^${'a?'.repeat(30)}${'a'.repeat(30)}$`, plain: false },
  { pattern: '^(a|aa){30}$', plain: false },
  { pattern: '^a*a*b$', plain: false },
  { pattern: '^a{0,999}a{0,999}b$', plain: false },
  { pattern: 'a*b', plain: false },
  { pattern: '^x|a*b', plain: false },
  { pattern: '^a*b$', plain: true },
  { pattern: '^[a-z]{2}(-[A-Z]{2})?$', plain: true },
  { pattern: '(a)\\1', plain: false },
  { pattern: 'a*?', plain: false },
  { pattern: '(a', plain: false },
])('$pattern is plain: $plain', ({ pattern, plain }) => {
  expect(isPlainPattern(pattern)).toBe(plain)
})

it.each(['^(a|a)*$', '^(aa?)*$', '^(a?a?)*$', '^a*a*a*a*b$'])(
  'answers at once where %s fits a text of 20,000 letters only almost',
  async (pattern) => {
    await loadPatternEngine()
    // JavaScript's engine would be busy for years.
    expect(patternMatcher(pattern)(`${'a'.repeat(20_000)}!`)).toBe(false)
  },
)

it('refuses what RE2 refuses', async () => {
  await loadPatternEngine()
  expect(() => patternMatcher('(a)\\1')).toThrow(/escape/)
  expect(() => patternMatcher('(?=a)')).toThrow(/unsupported Perl syntax/)
  expect(patternMatcher('(?i)^ab.$')('ABc')).toBe(true)
})
