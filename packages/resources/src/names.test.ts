import { describe, expect, it } from 'vitest'
import {
  isDns1035Label,
  isDns1123Label,
  isDns1123Subdomain,
  isLabelValue,
  isQualifiedName,
  labelValueError,
  qualifiedNameError,
} from './names.js'

const long = (length: number): string => 'a'.repeat(length)

describe('names', () => {
  it.each<{ rule: string; accepts: (text: string) => boolean; good: string[]; bad: string[] }>([
    {
      rule: 'a DNS-1123 label',
      accepts: isDns1123Label,
      good: ['a', '0a-b9', long(63)],
      bad: ['', 'A', 'a.b', '-a', 'a-', 'a_b', long(64), 'a\n'],
    },
    {
      rule: 'a DNS-1123 subdomain',
      accepts: isDns1123Subdomain,
      good: ['a', 'a.b-c.0', long(253)],
      bad: ['', 'a..b', '.a', 'a.', 'a.-b', long(254)],
    },
    { rule: 'a DNS-1035 label', accepts: isDns1035Label, good: ['a', 'a-0'], bad: ['0a', 'a.b', long(64)] },
    {
      rule: 'a label key',
      accepts: isQualifiedName,
      good: ['app', 'App_1.x', 'example.com/name', `${long(253)}/${long(63)}`],
      bad: ['', '/name', 'example.com/', 'a/b/c', '_x', 'Example.com/x', long(64)],
    },
    { rule: 'a label value', accepts: isLabelValue, good: ['', 'a', 'A_b.c-1'], bad: ['-a', 'a-', 'a b', long(64)] },
  ])('$rule', ({ accepts, good, bad }) => {
    expect(good.filter((text) => !accepts(text))).toEqual([])
    expect(bad.filter(accepts)).toEqual([])
  })

  it('says which part of a key is wrong', () => {
    expect(qualifiedNameError('Bad_/x')).toMatch(/^prefix part/)
    expect(qualifiedNameError('good/-x')).toMatch(/^name part must consist of .*'\)$/)
    expect(labelValueError('v'.repeat(64))).toBe('must be no more than 63 characters')
  })
})
