import { fieldTable, type KubeObject, type ManagedFieldsEntry } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import type { JsonSchema } from '../schema/index.js'
import { crdType, tableType, trackUpdate } from './index.js'

const now = new Date('2026-01-01T00:00:00Z')
const later = new Date('2026-01-01T00:01:00Z')
const pod = tableType(fieldTable, 'io.k8s.api.core.v1.Pod')
const configMap = tableType(fieldTable, 'io.k8s.api.core.v1.ConfigMap')

const map = (data: Record<string, string>, sent?: unknown): KubeObject => {
  // Clients may send anything as managedFields, so the rows below do.
  const managedFields = sent as ManagedFieldsEntry[] | undefined
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x', ...(managedFields && { managedFields }) },
    data,
  }
  return object
}

const created = trackUpdate({ before: undefined, after: map({ a: '1', b: '1' }), manager: 'one', type: configMap, now })

it('a creator owns everything but what the server sets', () => {
  expect(created).toEqual([
    {
      manager: 'one',
      operation: 'Update',
      apiVersion: 'v1',
      time: '2026-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { '.': {}, 'f:a': {}, 'f:b': {} } },
    },
  ])
})

it('an update moves ownership of what it changes, and of nothing else', () => {
  const entries = trackUpdate({
    before: map({ a: '1', b: '1' }, created),
    after: map({ a: '2', b: '1', c: '1' }),
    manager: 'two',
    type: configMap,
    now: later,
  })
  expect(entries?.map(({ manager, time, fieldsV1 }) => ({ manager, time, fieldsV1 }))).toEqual([
    { manager: 'one', time: '2026-01-01T00:00:00Z', fieldsV1: { 'f:data': { '.': {}, 'f:b': {} } } },
    { manager: 'two', time: '2026-01-01T00:01:00Z', fieldsV1: { 'f:data': { 'f:a': {}, 'f:c': {} } } },
  ])
})

it.each<{ when: string; data: Record<string, string> }>([{ when: 'nothing changes', data: { a: '1', b: '1' } }])(
  'the entries stay the same ones when $when',
  ({ data }) => {
    expect(
      trackUpdate({
        before: map({ a: '1', b: '1' }, created),
        after: map(data),
        manager: 'two',
        type: configMap,
        now: later,
      }),
    ).toBe(created)
  },
)

it('a field that disappears has no owner, and a manager of nothing no entry', () => {
  const entries = trackUpdate({
    before: map({ a: '1', b: '1' }, created),
    after: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } },
    manager: 'two',
    type: configMap,
    now: later,
  })
  expect(entries).toBeUndefined()
})

it.each<{ when: string; sent: unknown; managers: string[] | undefined }>([
  { when: 'a client clears them with [{}]', sent: [{}], managers: undefined },
  { when: 'a client clears them with []', sent: [], managers: undefined },
  { when: 'a client that does not know them sends none', sent: undefined, managers: ['one', 'two'] },
  {
    when: 'a client rewrites them',
    sent: [
      {
        manager: 'renamed',
        operation: 'Apply',
        apiVersion: 'v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { 'f:b': {} } },
      },
    ],
    managers: ['renamed', 'two'],
  },
  { when: 'what a client sends makes no sense', sent: [{ operation: 'Magic' }], managers: ['one', 'two'] },
])('when $when', ({ sent, managers }) => {
  const entries = trackUpdate({
    before: map({ a: '1', b: '1' }, created),
    after: map({ a: '2', b: '1' }, sent),
    manager: 'two',
    type: configMap,
    now: later,
  })
  expect(entries?.map((entry) => entry.manager)).toEqual(managers)
})

it('an object without entries is left alone until somebody applies', () => {
  expect(
    trackUpdate({ before: map({ a: '1' }), after: map({ a: '2' }), manager: 'one', type: configMap, now }),
  ).toBeUndefined()
})

describe('built-in types', () => {
  it('owns list items by key, and structs that always exist not at all', () => {
    const entries = trackUpdate({
      before: undefined,
      after: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p', labels: { app: 'a' } },
        spec: {
          containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80 }], resources: {} }],
          securityContext: {},
        },
      } as KubeObject,
      manager: 'one',
      type: pod,
      now,
    })
    expect(entries?.[0]?.fieldsV1).toEqual({
      'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
      'f:spec': {
        'f:containers': {
          'k:{"name":"c"}': {
            '.': {},
            'f:image': {},
            'f:name': {},
            'f:resources': {},
            'f:ports': {
              '.': {},
              'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} },
            },
          },
        },
        'f:securityContext': {},
      },
    })
  })

  it('check 65: the status endpoint has its own entry and takes nothing else', () => {
    const before = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'p',
        managedFields: [
          {
            manager: 'one',
            operation: 'Update',
            apiVersion: 'v1',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:spec': { 'f:nodeName': {} } },
          },
        ],
      },
    }
    const after = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, status: { phase: 'Running' } } as KubeObject
    const entries = trackUpdate({
      before,
      after,
      manager: 'kubelet',
      type: pod,
      now,
      subresource: 'status',
      ignores: (field) => field !== 'status',
    })
    expect(entries?.map(({ manager, subresource, fieldsV1 }) => [manager, subresource, fieldsV1])).toEqual([
      ['one', undefined, { 'f:spec': { 'f:nodeName': {} } }],
      ['kubelet', 'status', { 'f:status': { 'f:phase': {} } }],
    ])
  })

  it('past ten updaters the oldest are counted together', () => {
    let object = map({ k: '0' })
    for (let i = 0; i < 14; i++) {
      const after = map({ ...(object as { data?: Record<string, string> }).data, [`k${i}`]: '1' })
      const managedFields = trackUpdate({
        before: i === 0 ? undefined : object,
        after,
        manager: `m${i}`,
        type: configMap,
        now: new Date(now.getTime() + i * 1000),
      })
      object = { ...after, metadata: { ...after.metadata, managedFields: managedFields ?? [] } }
    }
    expect(object.metadata?.managedFields).toHaveLength(10)
    expect(object.metadata?.managedFields?.[0]?.manager).toBe('ancient-changes')
  })
})

it('custom types are owned by the rules of their schema', () => {
  const schema: JsonSchema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          set: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
          atomic: { type: 'array', items: { type: 'string' } },
          whole: { type: 'object', additionalProperties: { type: 'string' }, 'x-kubernetes-map-type': 'atomic' },
        },
      },
    },
  }
  const after = {
    apiVersion: 'a/v1',
    kind: 'A',
    metadata: { name: 'x' },
    spec: { set: ['b', 'a'], atomic: ['x'], whole: { k: 'v' } },
  } as KubeObject
  const entries = trackUpdate({ before: undefined, after, manager: 'one', type: crdType(schema, fieldTable), now })
  expect(entries?.[0]?.fieldsV1).toEqual({
    'f:spec': { '.': {}, 'f:atomic': {}, 'f:set': { '.': {}, 'v:"a"': {}, 'v:"b"': {} }, 'f:whole': {} },
  })
})
