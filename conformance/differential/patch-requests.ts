import { type Asked, container, core, patch, sandbox, sandboxes, stored } from './asked.js'

export const patches: readonly Asked[] = [
  ...(
    [
      ['merge', { data: { a: null, b: 'c' } }],
      ['merge', { metadata: { creationTimestamp: 'nope' } }],
      ['strategic', { metadata: { creationTimestamp: 'nope' } }],
      ['json', [{ op: 'add', path: '/metadata/deletionTimestamp', value: 'nope' }]],
      ['apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept', creationTimestamp: 'nope' } }],
      ['merge', { data: { a: 5 } }],
      ['strategic', { data: { a: 5 } }],
      ['json', [{ op: 'add', path: '/data/a', value: 5 }]],
      ['apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { a: 5 } }],
      ['merge', { metadata: 'x' }],
      ['merge', { kind: 'Other' }],
      ['merge', { apiVersion: 'v9' }],
      ['merge', { metadata: { name: 'other' } }],
      ['merge', { metadata: { namespace: 'other' } }],
      ['merge', { metadata: { resourceVersion: '1' } }],
      ['merge', []],
      ['merge', '{'],
      ['json', {}],
      ['json', '{'],
      ['json', [{ op: 'remove', path: '/data/none' }]],
      ['json', [{ op: 'test', path: '/data/a', value: 'x' }]],
      ['json', [{ op: 'nope', path: '/data/a' }]],
      ['json', [{ op: 'replace', path: '', value: { apiVersion: 'v1', kind: 'ConfigMap' } }]],
      ['strategic', '{'],
      ['apply', 'a: ['],
      ['apply', { kind: 'ConfigMap', metadata: { name: 'kept' } }],
      ['apply', { apiVersion: 'v1', metadata: { name: 'kept' } }],
      ['apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other' } }],
      ['apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept', namespace: 'other' } }],
      ['apply', { apiVersion: 'v1', kind: 'ConfigMap' }],
      ['apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept', managedFields: [] } }],
      ['apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { z: 'y' } }],
    ] as const
  ).map(([kind, body]) => patch(stored.configMap, kind, body)),
  {
    ...patch(stored.configMap, 'apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' } }),
    path: `${stored.configMap}?dryRun=All`,
  },
  { ...patch(stored.configMap, 'merge', {}), path: `${stored.configMap}?dryRun=All&force=true` },
  { ...patch(stored.configMap, 'merge', {}), type: 'application/json' },
  patch(`${core}/configmaps/none`, 'merge', {}),
  ...(
    [
      ['merge', { spec: { priority: 'x' } }],
      ['strategic', { spec: { containers: 'x' } }],
      ['strategic', { spec: { containers: [{ name: 'c', image: 5 }] } }],
      ['strategic', { spec: { containers: [{ image: 'x' }] } }],
      ['strategic', { spec: { containers: [{ name: 'c', image: 'example/c:2' }] } }],
      ['json', [{ op: 'replace', path: '/spec/containers', value: 'x' }]],
      [
        'apply',
        { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kept' }, spec: { containers: [{ name: 'c', image: 5 }] } },
      ],
      ['apply', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kept' }, spec: { containers: 'x' } }],
      ['apply', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kept' }, spec: { containers: [{ image: 'x' }] } }],
      ['merge', { spec: { nodeName: 'other' } }],
      ['merge', { spec: { containers: [{ ...container, image: 'example/c:2', command: ['x'] }] } }],
    ] as const
  ).map(([kind, body]) => patch(stored.pod, kind, body)),
  ...(['merge', 'strategic', 'apply'] as const).map((kind) =>
    patch(`${stored.pod}/status`, kind, {
      ...(kind === 'apply' ? { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kept' } } : {}),
      status: {
        conditions: [
          { type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: '2026-01-01T00:00:00Z' },
          { type: 'Other', status: 'False', lastTransitionTime: null },
        ],
      },
    }),
  ),
  ...(
    [
      ['merge', { spec: { renewTime: 'x' } }],
      ['strategic', { spec: { renewTime: 'x' } }],
      ['json', [{ op: 'add', path: '/spec/renewTime', value: 'x' }]],
      ['merge', { spec: { leaseDurationSeconds: 'x' } }],
      [
        'apply',
        { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'kept' }, spec: { renewTime: 'x' } },
      ],
    ] as const
  ).map(([kind, body]) => patch(stored.lease, kind, body)),
  ...(
    [
      ['merge', { metadata: { creationTimestamp: 'nope' } }],
      ['merge', { metadata: { labels: { a: 5 } } }],
      ['merge', { metadata: 'x' }],
      ['merge', { kind: 'Other' }],
      ['merge', { spec: 'x' }],
      ['json', [{ op: 'replace', path: '/spec', value: 5 }]],
      ['strategic', {}],
      ['apply', { ...sandbox, spec: { podTemplate: 'x' } }],
      ['apply', { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', metadata: { name: 'kept' }, nope: 1 }],
    ] as const
  ).map(([kind, body]) => patch(`${sandboxes}/kept`, kind, body)),
]
