import type { NetworkPolicy, Pod } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { parseEgress } from './egress-annotation.js'
import { policyGap, selectsPod } from './network-policies.js'

describe('parseEgress', () => {
  it.each([
    { text: undefined, rules: [] },
    { text: '', rules: [] },
    { text: 'packages.example.com:443', rules: ['packages.example.com:443'] },
    { text: ' A.example:80,  *.example.org:443\n b:1 ', rules: ['a.example:80', '*.example.org:443', 'b:1'] },
    { text: 'a:1,a:1', rules: ['a:1'] },
  ])('reads $text', ({ text, rules }) => {
    expect(parseEgress(text).rules.map(({ host, port }) => `${host}:${port}`)).toEqual(rules)
  })

  it('tells the package mirror from a host of that name', () => {
    expect(parseEgress('packages, packages:443')).toEqual({
      rules: [{ host: 'packages', port: 443 }],
      grants: ['packages'],
    })
  })

  it.each([
    'example.com',
    'example.com:0',
    'example.com:70000',
    'https://example.com:443',
    '*:443',
    'a.*.b:1',
    '-a:1',
    '[::1]:1',
  ])('refuses %s, naming it', (text) => {
    expect(() => parseEgress(`ok:1, ${text}`)).toThrow(
      expect.objectContaining({ code: 'InvalidEgress', message: expect.stringContaining(text) }),
    )
  })
})

const pod: Pod = { metadata: { namespace: 'ns', name: 'p', labels: { app: 'a' } } }
const policy = (spec: NetworkPolicy['spec'], namespace = 'ns'): NetworkPolicy => ({
  metadata: { name: 'np', namespace },
  ...(spec ? { spec } : {}),
})

describe('network policies', () => {
  it.each([
    { when: 'it selects all pods of the namespace', given: policy({ podSelector: {} }), selects: true },
    { when: 'its labels match', given: policy({ podSelector: { matchLabels: { app: 'a' } } }), selects: true },
    { when: 'its labels do not match', given: policy({ podSelector: { matchLabels: { app: 'b' } } }), selects: false },
    { when: 'it is of another namespace', given: policy({ podSelector: {} }, 'other'), selects: false },
  ])('selects: $when', ({ given, selects }) => {
    expect(selectsPod(given, pod)).toBe(selects)
  })

  it.each<{ when: string; spec: NetworkPolicy['spec']; says: RegExp | undefined }>([
    { when: 'it denies everything', spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }, says: undefined },
    {
      when: 'it opens the internet',
      spec: { podSelector: {}, policyTypes: ['Egress'], egress: [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }] },
      says: /allows egress by address \(0\.0\.0\.0\/0\)/,
    },
    { when: 'it opens everything', spec: { podSelector: {}, egress: [{}] }, says: /\(anywhere\)/ },
    {
      when: 'it lets others in',
      spec: { podSelector: {}, ingress: [{}] },
      says: /allows ingress, which is not opened/,
    },
  ])('when $when', ({ spec, says }) => {
    const gap = policyGap(policy(spec), [])
    if (says) expect(gap).toMatch(says)
    else expect(gap).toBeUndefined()
  })

  it('tells when a policy denies what the annotation opens', () => {
    const gap = policyGap(policy({ podSelector: {}, policyTypes: ['Egress'] }), [{ host: 'a', port: 1 }])
    expect(gap).toBe('NetworkPolicy "np" denies all egress, yet the pod\'s annotation opens a:1')
  })
})
