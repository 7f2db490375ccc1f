import type { Sandbox, SandboxClaim, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { annotations, labels } from '../shared/names.js'
import { planClaim, warmRetryAfterMs } from './plan.js'

const extensions = 'extensions.agents.x-k8s.io/v1beta1'
const ownedBy = (kind: string, name: string, uid: string) => [
  { apiVersion: extensions, kind, name, uid, controller: true },
]
const sandbox = (name: string, metadata: object): Stored<Sandbox> =>
  ({ metadata: { name, namespace: 'n', ...metadata }, spec: {} }) as unknown as Stored<Sandbox>
const mine = (name: string, more: object = {}) =>
  sandbox(name, { ownerReferences: ownedBy('SandboxClaim', 'c', 'claim'), ...more })
const warm = (name: string, pool = 'p') =>
  sandbox(name, {
    labels: { [labels.warmPool]: 'x', [labels.templateRefHash]: 'x' },
    ownerReferences: ownedBy('SandboxWarmPool', pool, 'pool'),
  })
const others = (name: string) => sandbox(name, { ownerReferences: ownedBy('SandboxClaim', 'd', 'other') })

interface Shape {
  bound?: string
  annotated?: string
  labelled?: string
  spec?: object
}
const claim = ({ bound, annotated, labelled, spec }: Shape = {}): Stored<SandboxClaim> =>
  ({
    metadata: {
      name: 'c',
      namespace: 'n',
      uid: 'claim',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(annotated ? { annotations: { [annotations.assignedSandbox]: annotated } } : {}),
      ...(labelled ? { labels: { [labels.assignedSandbox]: labelled } } : {}),
    },
    spec: { warmPoolRef: { name: 'p' }, ...spec },
    status: bound ? { sandbox: { name: bound } } : {},
  }) as unknown as Stored<SandboxClaim>

/** The plan in words: `use s (warm)`, and what goes first. */
function does(shape: Shape, ...sandboxes: Stored<Sandbox>[]): string {
  const found = new Map(sandboxes.map((one) => [one.metadata.name, one]))
  const { dropReference, surplus, next } = planClaim({ claim: claim(shape), findSandbox: (name) => found.get(name) })
  const migrates = 'migrate' in next && next.migrate ? ', migrate' : ''
  const words = {
    use: () => (next.kind === 'use' ? `use ${next.sandbox.metadata.name} (${next.launchType})` : ''),
    transfer: () => (next.kind === 'transfer' ? `transfer ${next.sandbox.metadata.name}` : ''),
    collision: () => (next.kind === 'collision' ? next.message : ''),
    cold: () => 'cold',
    warmOrCold: () => 'warm or cold',
  }
  return [
    ...(dropReference ? [`drop ${dropReference.reference.carrier}: ${dropReference.failure}`] : []),
    ...(surplus ? [`surplus ${surplus.metadata.name}`] : []),
    `${words[next.kind]()}${migrates}`,
  ].join('; ')
}

const stale = 'failed to remove stale sandbox reference from claim metadata'
const invalid = 'failed to remove invalid sandbox reference'
const taken = 'failed to remove sandbox reference owned by another claim'

describe('the sandbox of a claim', () => {
  it.each<{ when: string; shape: Shape; sandboxes?: Stored<Sandbox>[]; is: string }>([
    { when: 'nothing is recorded', shape: {}, is: 'warm or cold' },
    { when: 'it brings variables', shape: { spec: { env: [{ name: 'A', value: 'b' }] } }, is: 'cold' },
    { when: 'it brings volumes', shape: { spec: { volumeClaimTemplates: [{}] } }, is: 'cold' },
    { when: 'it brings empty lists', shape: { spec: { env: [], volumeClaimTemplates: [] } }, is: 'warm or cold' },
    { when: 'its status names its own', shape: { bound: 's' }, sandboxes: [mine('s')], is: 'use s (warm)' },
    { when: 'it was started cold', shape: { bound: 'c' }, sandboxes: [mine('c')], is: 'use c (cold)' },
    {
      when: 'a warm one happens to have its name',
      shape: { bound: 'c', annotated: 'c' },
      sandboxes: [mine('c')],
      is: 'use c (warm)',
    },
    {
      when: 'the same, recorded by an older controller',
      shape: { bound: 'c', labelled: 'c' },
      sandboxes: [mine('c')],
      is: 'use c (warm)',
    },
    { when: 'its status names one that is gone', shape: { bound: 's' }, is: 'warm or cold' },
    {
      when: 'its status names one of another claim',
      shape: { bound: 's' },
      sandboxes: [others('s')],
      is: 'warm or cold',
    },
    { when: 'one was assigned and is its own', shape: { annotated: 's' }, sandboxes: [mine('s')], is: 'use s (warm)' },
    {
      when: 'an older controller assigned it',
      shape: { labelled: 's' },
      sandboxes: [mine('s')],
      is: 'use s (warm), migrate',
    },
    { when: 'the transfer was interrupted', shape: { annotated: 's' }, sandboxes: [warm('s')], is: 'transfer s' },
    {
      when: 'the transfer of an older controller was interrupted',
      shape: { labelled: 's' },
      sandboxes: [warm('s')],
      is: 'transfer s, migrate',
    },
    { when: 'the assigned one is gone', shape: { annotated: 's' }, is: `drop annotation: ${stale}; warm or cold` },
    { when: 'the same, by label', shape: { labelled: 's' }, is: `drop label: ${stale}; warm or cold` },
    {
      when: 'the assigned one is of another pool',
      shape: { annotated: 's' },
      sandboxes: [warm('s', 'q')],
      is: `drop annotation: ${invalid}; warm or cold`,
    },
    {
      when: 'another claim has the assigned one',
      shape: { annotated: 's' },
      sandboxes: [others('s')],
      is: `drop annotation: ${taken}; warm or cold`,
    },
    {
      when: 'a user took the assigned one out of its pool',
      shape: { annotated: 's' },
      sandboxes: [sandbox('s', {})],
      is: 'warm or cold',
    },
    { when: 'its own was made and not recorded', shape: {}, sandboxes: [mine('c')], is: 'use c (cold)' },
    {
      when: 'a Sandbox of another owner has its name',
      shape: {},
      sandboxes: [others('c')],
      is: 'sandbox "c" is not controlled by claim "c". Please use a different claim name or delete the sandbox manually',
    },
    {
      when: 'it has a warm one and its own, whose creation seemed to fail',
      shape: { bound: 's' },
      sandboxes: [mine('s'), mine('c')],
      is: 'surplus c; use s (warm)',
    },
    {
      when: 'the surplus one is going',
      shape: { bound: 's' },
      sandboxes: [mine('s'), mine('c', { deletionTimestamp: '2026-01-01T00:00:00Z' })],
      is: 'use s (warm)',
    },
    {
      when: 'another owner has a Sandbox of its name beside its warm one',
      shape: { bound: 's' },
      sandboxes: [mine('s'), others('c')],
      is: 'use s (warm)',
    },
  ])('when $when', ({ shape, sandboxes = [], is }) => {
    expect(does(shape, ...sandboxes)).toBe(is)
  })
})

it.each([
  { when: 'it was just made', now: '2026-01-01T00:00:00.000Z', ms: 100 },
  { when: 'it has waited nearly long enough', now: '2026-01-01T00:00:01.950Z', ms: 50 },
  { when: 'it has waited enough', now: '2026-01-01T00:00:02.000Z', ms: undefined },
])('a claim whose warm sandboxes lack an address looks again after $ms ms when $when', ({ now, ms }) => {
  expect(warmRetryAfterMs(claim(), new Date(now))).toBe(ms)
})

it('a claim without a creation time does not wait', () => {
  const { creationTimestamp: _, ...metadata } = claim().metadata
  expect(warmRetryAfterMs({ ...claim(), metadata } as Stored<SandboxClaim>, new Date())).toBeUndefined()
})
