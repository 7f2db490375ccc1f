import { fieldTable, type KubeObject } from '@corral/resources'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type FieldSet, intersectSets, sameSets, subtractSets, unionSets } from './field-set.js'
import { applyPatch, tableType, trackUpdate } from './index.js'

const type = tableType(fieldTable, 'io.k8s.api.core.v1.Pod')
const now = new Date('2026-01-01T00:00:00Z')

const element = fc.constantFrom('f:a', 'f:b', 'v:1')
const set: fc.Arbitrary<FieldSet> = fc.letrec<{ node: FieldSet }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3 },
    fc.constant<FieldSet>({}),
    fc
      .tuple(fc.boolean(), fc.dictionary(element, tie('node'), { maxKeys: 3, noNullPrototype: true }))
      .map(([isMember, children]): FieldSet => (isMember ? { '.': {}, ...children } : children)),
  ),
})).node

const labels = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2'), { noNullPrototype: true })
const containers = fc.uniqueArray(
  fc.record(
    { name: fc.constantFrom('x', 'y', 'z'), image: fc.constantFrom('i', 'j'), args: fc.constantFrom(['1'], ['2']) },
    { requiredKeys: ['name'], noNullPrototype: true },
  ),
  { selector: (container) => container.name },
)
const pod: fc.Arbitrary<KubeObject> = fc.tuple(labels, containers).map(
  ([podLabels, list]) =>
    ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', labels: podLabels },
      spec: { containers: list },
    }) as KubeObject,
)

function apply(live: KubeObject | undefined, applied: KubeObject, manager: string): KubeObject {
  const result = applyPatch({ live, applied, manager, force: true, type, now })
  if ('conflicts' in result) throw new Error('forced applies have no conflicts')
  return result.object
}

it('sets obey the laws of sets', () => {
  fc.assert(
    fc.property(set, set, (a, b) => {
      const both = unionSets(a, b)
      expect(sameSets(both, unionSets(b, a))).toBe(true)
      expect(sameSets(unionSets(subtractSets(a, b), intersectSets(a, b)), a)).toBe(true)
      expect(intersectSets(subtractSets(a, b), b)).toBeUndefined()
    }),
  )
})

it('applying twice is applying once', () => {
  fc.assert(
    fc.property(pod, pod, (first, second) => {
      const live = apply(apply(undefined, first, 'one'), second, 'two')
      expect(apply(live, second, 'two')).toBe(live)
    }),
  )
})

it('a manager that applies nothing leaves no trace of itself', () => {
  const nothing: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } }
  fc.assert(
    fc.property(pod, pod, (first, second) => {
      const live = apply(apply(undefined, first, 'one'), second, 'two')
      const left = apply(live, nothing, 'two')
      expect(left.metadata?.managedFields?.some((entry) => entry.manager === 'two') ?? false).toBe(false)
    }),
  )
})

it('whatever an update changes is owned by exactly one updater', () => {
  fc.assert(
    fc.property(pod, pod, (first, second) => {
      const created = trackUpdate({ before: undefined, after: first, manager: 'one', type, now }) ?? []
      const before = { ...first, metadata: { ...first.metadata, managedFields: created } }
      const entries = trackUpdate({ before, after: second, manager: 'two', type, now }) ?? []
      const one = entries.find((entry) => entry.manager === 'one')?.fieldsV1 as FieldSet | undefined
      const two = entries.find((entry) => entry.manager === 'two')?.fieldsV1 as FieldSet | undefined
      expect(intersectSets(one, two)).toBeUndefined()
    }),
  )
})
