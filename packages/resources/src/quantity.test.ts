import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityToNumber,
} from './quantity.js'

describe('quantities', () => {
  it.each([
    ['0', '0'],
    ['1000m', '1'],
    ['0.5', '500m'],
    ['.5', '500m'],
    ['1.', '1.'],
    ['+2', '+2'],
    ['-1500m', '-1500m'],
    ['1500', '1500'],
    ['1000', '1k'],
    ['100000', '100k'],
    ['1024', '1024'],
    ['1024Ki', '1Mi'],
    ['1Gi', '1Gi'],
    ['1536Mi', '1536Mi'],
    ['0.5Gi', '512Mi'],
    ['0.5Ki', '512'],
    ['1.5Ki', '1536'],
    ['0.3Ki', '307200m'],
    ['1e3', '1e3'],
    ['1E3', '1E3'],
    ['12e2', '1200'],
    ['1e-3', '1e-3'],
    ['1E', '1E'],
    ['5n', '5n'],
    ['0.1n', '1n'],
    ['-0.1n', '-1n'],
    ['1e-40', '1e-9'],
    ['9999999999999999Ei', '9223372036854775807'],
    ['1.500', '1.500'],
    ['+5m', '+5m'],
    [2, '2'],
    [0.25, '250m'],
  ])('%s is written %s', (text, canonical) => {
    expect(canonicalQuantity(text)).toBe(canonical)
  })

  it.each(['', '.', 'm', '1x', '1 Gi', '1Kib', '--1', '1e', '1e1.5', 'NaN', '1mi', '1K', '0x10', '1e9999999'])(
    '%s is none',
    (text) => {
      expect(parseQuantity(text)).toBeUndefined()
    },
  )

  it('compares and adds by value, whatever the spelling', () => {
    const [half, spelled, one] = [parseQuantity('0.5')!, parseQuantity('500m')!, parseQuantity('1Ki')!]
    expect(compareQuantities(half, spelled)).toBe(0)
    expect(compareQuantities(half, one)).toBeLessThan(0)
    expect(compareQuantities(one, half)).toBeGreaterThan(0)
    expect(formatQuantity(addQuantities(half, spelled))).toBe('1')
    expect(quantityToNumber('1500m')).toBe(1.5)
    expect(quantityToNumber('4Gi')).toBe(4 * 1024 ** 3)
    expect(quantityToNumber('four')).toBeUndefined()
  })

  it('keeps the value of any quantity through its canonical text', () => {
    const suffix = fc.constantFrom('n', 'u', 'm', '', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'e3', 'e-2')
    fc.assert(
      fc.property(fc.integer({ min: -1e6, max: 1e6 }), suffix, (number, unit) => {
        const quantity = parseQuantity(`${number}${unit}`)!
        const text = formatQuantity(quantity)
        expect(parseQuantity(text)?.nanos).toBe(quantity.nanos)
        expect(canonicalQuantity(text)).toBe(text)
      }),
    )
  })
})
