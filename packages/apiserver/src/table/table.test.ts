import type { KubeObject } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { builtInPrinter, customPrinter, toPartialObjectMetadata, toTable } from './index.js'

const now = new Date('2026-01-01T00:05:03Z')
const metadata = { name: 'x', namespace: 'n', creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '7' }

function row(group: string, object: KubeObject & Record<string, unknown>): Record<string, unknown> {
  const table = toTable([{ metadata, ...object }], { printer: builtInPrinter(group, object.kind ?? ''), now })
  return Object.fromEntries(table.columnDefinitions.map((column, i) => [column.name, table.rows[0]?.cells[i]]))
}

describe('pods', () => {
  const container = (state: object, more: object = {}): object => ({
    name: 'a',
    ready: false,
    restartCount: 0,
    state,
    ...more,
  })
  const spec = { containers: [{ name: 'a' }] }
  const running = container({ running: {} }, { ready: true })

  it.each<{ when: string; spec?: object; status: object; metadata?: object; shows: object }>([
    {
      when: 'it waits to be scheduled',
      status: { phase: 'Pending' },
      shows: { Ready: '0/1', Status: 'Pending', Restarts: '0', Age: '5m3s', IP: '<none>' },
    },
    {
      when: 'it runs',
      status: { phase: 'Running', podIP: '10.0.0.1', containerStatuses: [running] },
      shows: { Ready: '1/1', Status: 'Running', IP: '10.0.0.1' },
    },
    {
      when: 'an image cannot be pulled',
      status: { phase: 'Pending', containerStatuses: [container({ waiting: { reason: 'ErrImagePull' } })] },
      shows: { Status: 'ErrImagePull' },
    },
    {
      when: 'it has completed',
      status: {
        phase: 'Succeeded',
        containerStatuses: [container({ terminated: { exitCode: 0, reason: 'Completed' } })],
      },
      shows: { Status: 'Completed', Ready: '0/1' },
    },
    {
      when: 'it failed without a reason',
      status: { phase: 'Failed', containerStatuses: [container({ terminated: { exitCode: 3 } })] },
      shows: { Status: 'ExitCode:3' },
    },
    {
      when: 'it is being deleted',
      metadata: { deletionTimestamp: '2026-01-01T00:05:00Z' },
      status: { phase: 'Running', containerStatuses: [running] },
      shows: { Status: 'Terminating' },
    },
    {
      when: 'it restarted',
      status: {
        phase: 'Running',
        containerStatuses: [
          container(
            { running: {} },
            { ready: true, restartCount: 2, lastState: { terminated: { finishedAt: '2026-01-01T00:04:03Z' } } },
          ),
        ],
      },
      shows: { Restarts: '2 (60s ago)' },
    },
    {
      when: 'an init container runs',
      spec: { containers: [{ name: 'a' }], initContainers: [{ name: 'i' }, { name: 'j' }] },
      status: {
        phase: 'Pending',
        initContainerStatuses: [container({ terminated: { exitCode: 0 } }), container({ running: {} })],
        containerStatuses: [container({ waiting: { reason: 'PodInitializing' } })],
      },
      shows: { Status: 'Init:1/2' },
    },
  ])('when $when', (world) => {
    const pod = {
      kind: 'Pod',
      metadata: { ...metadata, ...world.metadata },
      spec: world.spec ?? spec,
      status: world.status,
    }
    expect(row('', pod)).toMatchObject(world.shows)
  })
})

it.each<{ group: string; object: KubeObject & Record<string, unknown>; shows: object }>([
  {
    group: '',
    object: { kind: 'Namespace', status: { phase: 'Active' } },
    shows: { Name: 'x', Status: 'Active', Age: '5m3s' },
  },
  { group: '', object: { kind: 'ConfigMap', data: { a: '1' }, binaryData: { b: '' } }, shows: { Data: 2 } },
  { group: '', object: { kind: 'Secret', type: 'Opaque', data: {} }, shows: { Type: 'Opaque', Data: 0 } },
  {
    group: '',
    object: {
      kind: 'Service',
      spec: {
        type: 'ClusterIP',
        clusterIP: '10.0.0.1',
        ports: [
          { port: 80, protocol: 'TCP' },
          { port: 53, nodePort: 3053, protocol: 'UDP' },
        ],
        selector: { b: '2', a: '1' },
      },
    },
    shows: {
      Type: 'ClusterIP',
      'Cluster-IP': '10.0.0.1',
      'External-IP': '<none>',
      'Port(s)': '80/TCP,53:3053/UDP',
      Selector: 'a=1,b=2',
    },
  },
  {
    group: '',
    object: {
      kind: 'Node',
      metadata: { ...metadata, labels: { 'node-role.kubernetes.io/worker': '' } },
      spec: { unschedulable: true },
      status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: 'v1' } },
    },
    shows: { Status: 'Ready,SchedulingDisabled', Roles: 'worker', Version: 'v1', 'Internal-IP': '<none>' },
  },
  {
    group: '',
    object: {
      kind: 'PersistentVolumeClaim',
      spec: { volumeName: 'v', storageClassName: 'local' },
      status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteMany', 'ReadWriteOnce'] },
    },
    shows: {
      Status: 'Bound',
      Volume: 'v',
      Capacity: '1Gi',
      'Access Modes': 'RWO,RWX',
      StorageClass: 'local',
      VolumeAttributesClass: '<unset>',
    },
  },
  {
    group: '',
    object: {
      kind: 'Event',
      involvedObject: { kind: 'Pod', name: 'p' },
      reason: 'Killing',
      type: 'Normal',
      message: 'Stopping ',
      lastTimestamp: '2026-01-01T00:05:00Z',
      count: 4,
      source: { component: 'kubelet', host: 'h' },
    },
    shows: {
      'Last Seen': '3s',
      Object: 'pod/p',
      Message: 'Stopping',
      Count: 4,
      Source: 'kubelet, h',
      'First Seen': '<unknown>',
    },
  },
  { group: 'coordination.k8s.io', object: { kind: 'Lease', spec: { holderIdentity: 'me' } }, shows: { Holder: 'me' } },
  {
    group: 'networking.k8s.io',
    object: { kind: 'NetworkPolicy', spec: { podSelector: {} } },
    shows: { 'Pod-Selector': '<none>' },
  },
  {
    group: 'discovery.k8s.io',
    object: {
      kind: 'EndpointSlice',
      addressType: 'IPv4',
      ports: [{ port: 80 }],
      endpoints: ['1', '2', '3', '4'].map((ip) => ({ addresses: [ip] })),
    },
    shows: { AddressType: 'IPv4', Ports: '80', Endpoints: '1,2,3 + 1 more...' },
  },
  {
    group: 'apps',
    object: {
      kind: 'Deployment',
      spec: { replicas: 2, template: { spec: { containers: [{ name: 'a', image: 'i' }] } } },
      status: { readyReplicas: 1 },
    },
    shows: { Ready: '1/2', 'Up-to-date': 0, Images: 'i' },
  },
  {
    group: 'storage.k8s.io',
    object: {
      kind: 'StorageClass',
      metadata: { ...metadata, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'p',
    },
    shows: { Name: 'x (default)', ReclaimPolicy: 'Delete' },
  },
  {
    group: 'rbac.authorization.k8s.io',
    object: { kind: 'ClusterRole' },
    shows: { 'Created At': '2026-01-01T00:00:00Z' },
  },
  { group: 'nobody.example.org', object: { kind: 'Unknown' }, shows: { Name: 'x', Age: '5m3s' } },
])('$object.kind shows its columns', ({ group, object, shows }) => {
  expect(row(group, object)).toMatchObject(shows)
})

describe('custom kinds', () => {
  const printer = customPrinter([
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas', priority: 1 },
    { name: 'Seen', type: 'date', jsonPath: '.status.seen' },
  ])

  it('check 30: show their declared columns, a missing value as null', () => {
    const objects = [
      {
        metadata,
        spec: { replicas: 2 },
        status: { conditions: [{ type: 'Ready', status: 'True' }], seen: '2026-01-01T00:04:00Z' },
      },
      { metadata },
    ]
    const table = toTable(objects, { printer, now })
    expect(table.columnDefinitions.map((column) => [column.name, column.priority])).toEqual([
      ['Name', 0],
      ['Ready', 0],
      ['Replicas', 1],
      ['Seen', 0],
    ])
    expect(table.rows.map((each) => each.cells)).toEqual([
      ['x', 'True', 2, '63s'],
      ['x', null, null, null],
    ])
  })

  it('show Name and Age when nothing is declared', () => {
    expect(toTable([{ metadata }], { printer: customPrinter([]), now }).rows[0]?.cells).toEqual(['x', '5m3s'])
  })
})

describe('what a row carries of its object', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1' } }
  const printer = builtInPrinter('', 'ConfigMap')

  it.each([
    { include: 'Metadata', carries: toPartialObjectMetadata(object) },
    { include: 'Object', carries: object },
    { include: 'None', carries: null },
  ] as const)('includeObject=$include', ({ include, carries }) => {
    expect(toTable([object], { printer, now, includeObject: include }).rows[0]?.object).toEqual(carries)
  })

  it('is metadata and nothing else by default', () => {
    expect(toTable([object], { printer, now }).rows[0]?.object).toEqual({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata,
    })
  })

  it('check 28: a later watch event has no columns, and the version of its object', () => {
    const table = toTable([object], { printer, now, omitColumns: true })
    expect(table).toMatchObject({ columnDefinitions: [], metadata: { resourceVersion: '7' } })
  })
})
