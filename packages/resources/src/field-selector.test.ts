import { describe, expect, it } from 'vitest'
import { matchesFields, parseFieldSelector } from './field-selector.js'

describe('field selectors', () => {
  it.each([
    ['', []],
    ['metadata.name=a', [{ field: 'metadata.name', operator: '=', value: 'a' }]],
    [
      'status.phase!=Running,spec.nodeName==',
      [
        { field: 'status.phase', operator: '!=', value: 'Running' },
        { field: 'spec.nodeName', operator: '=', value: '' },
      ],
    ],
    ['a=x\\,y\\=z\\\\', [{ field: 'a', operator: '=', value: 'x,y=z\\' }]],
  ])('reads "%s"', (text, requirements) => {
    expect(parseFieldSelector(text)).toEqual(requirements)
  })

  it.each(['metadata.name', 'a=b=c', 'a=\\x', 'a=b\\'])('refuses "%s"', (text) => {
    expect(() => parseFieldSelector(text)).toThrow(expect.objectContaining({ code: 'BadRequest' }))
  })

  it('treats an absent field as empty', () => {
    const read = (field: string): string | undefined => ({ phase: 'Running' })[field]
    expect(matchesFields(parseFieldSelector('phase=Running,node='), read)).toBe(true)
    expect(matchesFields(parseFieldSelector('node!='), read)).toBe(false)
  })
})
