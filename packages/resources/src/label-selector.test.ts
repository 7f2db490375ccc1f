import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  formatRequirements,
  type LabelRequirement,
  matchesLabelSelector,
  matchesRequirements,
  parseLabelSelector,
  requirementsOf,
  SelectorError,
} from './label-selector.js'

const labels = { app: 'web', tier: 'front', size: '7', empty: '' }

describe('label selectors', () => {
  it.each<[selector: string, matches: boolean]>([
    ['', true],
    ['app', true],
    ['missing', false],
    ['!app', false],
    ['! missing', true],
    ['app=web', true],
    ['app==web', true],
    ['app = web , tier=front', true],
    ['app=web,tier=back', false],
    ['app!=web', false],
    ['missing!=x', true],
    ['app in (web, api)', true],
    ['app in (api)', false],
    ['app notin (api)', true],
    ['missing notin (a,b)', true],
    ['empty=', true],
    ['app=', false],
    ['empty in (,x)', true],
    ['size>6', true],
    ['size>7', false],
    ['size<8', true],
    ['app>1', false],
    ['in in (a)', false],
    ['example.com/x!=1,app', true],
  ])('"%s" matches: %s', (selector, expected) => {
    expect(matchesRequirements(parseLabelSelector(selector), labels)).toBe(expected)
  })

  it.each([
    'a b',
    'a in',
    'a in b',
    'a in (b',
    'a=b=c',
    ',a',
    'a,',
    '=b',
    'a>x',
    '!',
    '(a)',
    'a=b c',
    'Ä=1',
    'a=-b',
    'a!b',
    'a in (b c)',
  ])('"%s" is refused', (selector) => {
    expect(() => parseLabelSelector(selector)).toThrow(SelectorError)
  })

  it('matches selector objects; an empty one everything, an absent one nothing', () => {
    const selector = {
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['front'] },
        { key: 'missing', operator: 'DoesNotExist' },
        { key: 'size', operator: 'Exists' },
        { key: 'app', operator: 'NotIn', values: ['api'] },
      ],
    }
    expect(matchesLabelSelector(selector, labels)).toBe(true)
    expect(matchesLabelSelector(selector, { ...labels, missing: '1' })).toBe(false)
    expect(matchesLabelSelector({}, undefined)).toBe(true)
    expect(matchesLabelSelector(undefined, labels)).toBe(false)
    expect(() => requirementsOf({ matchExpressions: [{ key: 'a', operator: 'Near' }] })).toThrow(/Near/)
  })

  it('reads back what it writes', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/)
    const values = fc.uniqueArray(word, { minLength: 1, maxLength: 3 }).map((list) => list.sort())
    const requirement: fc.Arbitrary<LabelRequirement> = fc.oneof(
      fc.record({
        key: word,
        operator: fc.constantFrom('exists' as const, 'notExists' as const),
        values: fc.constant([]),
      }),
      fc.record({ key: word, operator: fc.constantFrom('in' as const, 'notIn' as const), values }),
    )
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 4 }), (requirements) => {
        expect(parseLabelSelector(formatRequirements(requirements))).toEqual(requirements)
      }),
    )
  })

  it('never answers anything but requirements or a SelectorError', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ab=!<>(), in'), maxLength: 20 }), (text) => {
        try {
          expect(Array.isArray(parseLabelSelector(text))).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(SelectorError)
        }
      }),
    )
  })
})
