import { fieldTable, type KubeObject } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { type ApplyResult, applyPatch, tableType, trackUpdate } from './index.js'

const now = new Date('2026-01-01T00:00:00Z')
const later = new Date('2026-01-01T00:01:00Z')
const configMap = tableType(fieldTable, 'io.k8s.api.core.v1.ConfigMap')
const deployment = tableType(fieldTable, 'io.k8s.api.apps.v1.Deployment')

type Map = KubeObject & { data?: Record<string, string> }
const map = (data?: Record<string, string>): Map => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'x' },
  ...(data && { data }),
})

function objectOf(result: ApplyResult): Map {
  if ('conflicts' in result) throw new Error(result.conflicts.message)
  return result.object
}
const apply = (
  live: Map | undefined,
  data: Record<string, string> | undefined,
  manager: string,
  more: { force?: boolean; at?: Date } = {},
): ApplyResult =>
  applyPatch({ live, applied: map(data), manager, force: more.force ?? false, type: configMap, now: more.at ?? now })
const owners = (object: KubeObject): Record<string, unknown> =>
  Object.fromEntries((object.metadata?.managedFields ?? []).map((entry) => [entry.manager ?? '', entry.fieldsV1]))

describe('check 59-62: apply', () => {
  const one = objectOf(apply(undefined, { a: '1', b: '1' }, 'one'))

  it('creates and records what was applied', () => {
    expect(one.data).toEqual({ a: '1', b: '1' })
    expect(one.metadata?.managedFields).toEqual([
      {
        manager: 'one',
        operation: 'Apply',
        apiVersion: 'v1',
        time: '2026-01-01T00:00:00Z',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { 'f:a': {}, 'f:b': {} } },
      },
    ])
  })

  it('removes what is no longer applied', () => {
    const next = objectOf(apply(one, { a: '1' }, 'one'))
    expect(next.data).toEqual({ a: '1' })
    expect(owners(next)).toEqual({ one: { 'f:data': { 'f:a': {} } } })
  })

  it('drops a map that loses its last entry', () => {
    expect(objectOf(apply(one, undefined, 'one'))).not.toHaveProperty('data')
  })

  it('shares what two managers apply alike, and keeps it until both let go', () => {
    const shared = objectOf(apply(one, { a: '1' }, 'two'))
    // Who joins without changing anything has no time, and stands before those that have.
    expect(shared.metadata?.managedFields?.map(({ manager, time }) => [manager, time === undefined])).toEqual([
      ['two', true],
      ['one', false],
    ])
    const afterOne = objectOf(apply(shared, { b: '1' }, 'one'))
    expect(afterOne.data).toEqual({ a: '1', b: '1' })
    expect(objectOf(apply(afterOne, {}, 'two')).data).toEqual({ b: '1' })
  })

  it('refuses to change what another manager owns, unless forced', () => {
    expect(apply(one, { a: '2' }, 'two')).toEqual({
      conflicts: {
        message: 'Apply failed with 1 conflict: conflict with "one": .data.a',
        causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' }],
      },
    })
    const forced = objectOf(apply(one, { a: '2' }, 'two', { force: true }))
    expect(forced.data).toEqual({ a: '2', b: '1' })
    expect(owners(forced)).toEqual({ one: { 'f:data': { 'f:b': {} } }, two: { 'f:data': { 'f:a': {} } } })
  })

  it('names the version of an updater, and lists several conflicts', () => {
    const updated = map({ a: '1', b: '1' })
    const managedFields =
      trackUpdate({ before: undefined, after: updated, manager: 'editor', type: configMap, now }) ?? []
    const live = { ...updated, metadata: { ...updated.metadata, managedFields } }
    const result = apply(live, { a: '2', b: '2' }, 'one')
    expect(result).toMatchObject({
      conflicts: { message: 'Apply failed with 2 conflicts: conflicts with "editor" using v1:\n- .data.a\n- .data.b' },
    })
  })

  it('check 67: an identical apply changes nothing, time included', () => {
    expect(objectOf(apply(one, { a: '1', b: '1' }, 'one', { at: later }))).toBe(one)
  })

  it('an object nobody managed belongs to whoever came before', () => {
    const live: Map = { ...map({ a: '1' }), metadata: { name: 'x', creationTimestamp: '2025-01-01T00:00:00Z' } }
    expect(apply(live, { a: '2' }, 'one')).toMatchObject({
      conflicts: { causes: [{ message: 'conflict with "before-first-apply" using v1' }] },
    })
    const next = objectOf(apply(live, { b: '1' }, 'one'))
    expect(owners(next)).toEqual({
      'before-first-apply': { 'f:data': { '.': {}, 'f:a': {} } },
      one: { 'f:data': { 'f:b': {} } },
    })
  })

  it('check 66: kubectl goes from client-side to server-side apply without conflict, and back', () => {
    const annotation = 'kubectl.kubernetes.io/last-applied-configuration'
    const config = { ...map({ a: '1' }), metadata: { name: 'x', annotations: {} } }
    const clientSide: Map = {
      ...config,
      metadata: { name: 'x', annotations: { [annotation]: `${JSON.stringify(config)}\n` } },
    }
    const managedFields =
      trackUpdate({
        before: undefined,
        after: clientSide,
        manager: 'kubectl-client-side-apply',
        type: configMap,
        now,
      }) ?? []
    const live = { ...clientSide, metadata: { ...clientSide.metadata, managedFields } }
    const next = objectOf(apply(live, { a: '2' }, 'kubectl'))
    expect(next.data).toEqual({ a: '2' })
    expect(JSON.parse(next.metadata?.annotations?.[annotation] ?? '')).toMatchObject({ data: { a: '2' } })
  })
})

describe('check 64: lists', () => {
  const workload = (containers: object[]): KubeObject =>
    ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'd', finalizers: ['x/a'] },
      spec: { template: { spec: { containers } } },
    }) as KubeObject
  const containersOf = (object: KubeObject): unknown =>
    (object as { spec?: { template?: { spec?: { containers?: unknown } } } }).spec?.template?.spec?.containers
  const run = (live: KubeObject | undefined, applied: KubeObject, manager: string): ApplyResult =>
    applyPatch({ live, applied, manager, force: false, type: deployment, now })

  const live = objectOf(
    run(undefined, workload([{ name: 'a', image: 'i', args: ['1', '2'], ports: [{ containerPort: 80 }] }]), 'one'),
  )

  it('owns items by key and their fields one by one', () => {
    expect(owners(live).one).toEqual({
      'f:metadata': { 'f:finalizers': { 'v:"x/a"': {} } },
      'f:spec': {
        'f:template': {
          'f:spec': {
            'f:containers': {
              'k:{"name":"a"}': {
                '.': {},
                'f:args': {},
                'f:image': {},
                'f:name': {},
                'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
              },
            },
          },
        },
      },
    })
  })

  it('merges items by key; another manager adds its own', () => {
    const next = objectOf(
      run(
        live,
        workload([
          { name: 'b', image: 'j' },
          { name: 'a', env: [{ name: 'E', value: '1' }] },
        ]),
        'two',
      ),
    )
    expect(containersOf(next)).toEqual([
      { name: 'b', image: 'j' },
      { name: 'a', image: 'i', args: ['1', '2'], ports: [{ containerPort: 80 }], env: [{ name: 'E', value: '1' }] },
    ])
  })

  it('removes an item its only owner no longer applies, and nothing another one uses', () => {
    const both = objectOf(run(live, workload([{ name: 'b' }, { name: 'c' }]), 'two'))
    const next = objectOf(run(both, workload([{ name: 'c' }]), 'two'))
    expect(containersOf(next)).toMatchObject([{ name: 'a' }, { name: 'c' }])
    const kept = objectOf(run(both, workload([]), 'one'))
    expect(containersOf(kept)).toMatchObject([{ name: 'b' }, { name: 'c' }])
  })

  it('replaces an atomic list as a whole', () => {
    expect(run(live, workload([{ name: 'a', args: ['3'] }]), 'two')).toMatchObject({
      conflicts: { causes: [{ field: '.spec.template.spec.containers[name="a"].args' }] },
    })
    const next = objectOf(run(live, workload([{ name: 'a', args: ['3'] }]), 'one'))
    expect(containersOf(next)).toEqual([{ name: 'a', args: ['3'] }])
  })

  it('adds to a set without repeating', () => {
    const applied = { ...workload([]), metadata: { name: 'd', finalizers: ['x/b', 'x/a'] } }
    expect(objectOf(run(live, applied, 'two')).metadata?.finalizers).toEqual(['x/b', 'x/a'])
  })
})

it('check 65: the status endpoint applies as a manager of its own', () => {
  const live = objectOf(apply(undefined, { a: '1' }, 'one'))
  const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, status: { ok: true } } as KubeObject
  const result = applyPatch({
    live,
    applied,
    manager: 'one',
    force: false,
    type: configMap,
    now,
    subresource: 'status',
    ignores: (field) => field !== 'status',
  })
  expect(objectOf(result)).toMatchObject({ data: { a: '1' }, status: { ok: true } })
  expect(objectOf(result).metadata?.managedFields?.map(({ subresource }) => subresource)).toEqual([undefined, 'status'])
})
