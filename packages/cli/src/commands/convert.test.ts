import { describe, expect, it } from 'vitest'
import { parseDocuments } from './convert.js'

describe('manifests to convert', () => {
  it('are taken one by one, without the empty ones between two lines of dashes', () => {
    const kinds = parseDocuments('---\nkind: Sandbox\n---\n---\nkind: Pod\n', 'all.yaml').map(({ kind }) => kind)
    expect(kinds).toEqual(['Sandbox', 'Pod'])
  })

  it.each([
    { text: 'garbage', told: 'all.yaml: document 1 is no Kubernetes object' },
    { text: 'kind: Pod\n---\n- kind: Pod\n', told: 'all.yaml: document 2 is no Kubernetes object' },
    { text: 'metadata: {}\n', told: 'all.yaml: document 1 is no Kubernetes object' },
    { text: '', told: 'all.yaml: holds no Kubernetes object' },
    { text: 'a: [', told: /^all\.yaml is not YAML: / },
  ])('are refused, and not called converted: $text', ({ text, told }) => {
    expect(() => parseDocuments(text, 'all.yaml')).toThrow(told)
  })
})
