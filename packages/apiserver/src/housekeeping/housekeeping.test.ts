import type { EndpointSlice, KubeObject, Pod } from '@corral/resources'
import { afterEach, describe, expect, it } from 'vitest'
import { type Housekeeping, type PropagationPolicy, refOf, startHousekeeping } from './index.js'
import { MemoryCollectStore } from './memory-store.test-suite.js'

const SLICES = 'endpointslices.discovery.k8s.io'
const CRDS = 'customresourcedefinitions.apiextensions.k8s.io'
const kinds = {
  namespaces: false,
  configmaps: true,
  secrets: true,
  pods: true,
  services: true,
  events: true,
  [SLICES]: true,
  [CRDS]: false,
  'things.example.org': true,
}

let running: Housekeeping | undefined
afterEach(async () => running?.close())

function start(store: MemoryCollectStore, now = new Date('2026-01-01T00:00:00Z')): Housekeeping {
  running = startHousekeeping({ store, clock: { now: () => now } })
  return running
}
const owned = (name: string, owners: string[], more: object = {}): KubeObject => ({
  metadata: {
    name,
    namespace: 'n',
    ownerReferences: owners.map((uid) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: uid, uid, ...more })),
  },
})
const plain = (name: string, namespace = 'n'): KubeObject => ({ metadata: { name, namespace } })

describe('garbage', () => {
  async function deleteOwner(store: MemoryCollectStore, propagationPolicy: PropagationPolicy): Promise<void> {
    await store.delete(refOf('configmaps', store.find('configmaps', 'owner')!), { propagationPolicy })
    await running?.idle()
  }

  it('check 95: dependents vanish after their owner, all the way down', async () => {
    const store = new MemoryCollectStore(kinds)
    store.add('configmaps', plain('owner'))
    store.add('secrets', owned('child', ['owner']))
    store.add('pods', owned('grandchild', ['child']))
    start(store)
    await deleteOwner(store, 'Background')
    await expect
      .poll(() => [store.names('configmaps'), store.names('secrets'), store.names('pods')])
      .toEqual([[], [], []])
  })

  it('check 96: a foreground deletion ends with the owner', async () => {
    const store = new MemoryCollectStore(kinds)
    store.add('configmaps', plain('owner'))
    store.add('secrets', {
      metadata: { ...owned('child', ['owner'], { blockOwnerDeletion: true }).metadata, finalizers: ['held'] },
    })
    start(store)
    await deleteOwner(store, 'Foreground')
    await expect.poll(() => store.find('secrets', 'child')?.metadata?.deletionTimestamp).toBeDefined()
    expect(store.names('configmaps')).toEqual(['owner'])
    await store.update(refOf('secrets', store.find('secrets', 'child')!), (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: [] },
    }))
    await expect.poll(() => [store.names('configmaps'), store.names('secrets')]).toEqual([[], []])
  })

  it('check 97: orphans stay, without the reference', async () => {
    const store = new MemoryCollectStore(kinds)
    store.add('configmaps', plain('owner'))
    store.add('secrets', owned('child', ['owner']))
    start(store)
    await deleteOwner(store, 'Orphan')
    await expect.poll(() => store.names('configmaps')).toEqual([])
    expect(store.find('secrets', 'child')?.metadata?.ownerReferences).toBeUndefined()
  })

  it('check 98: a dependent of two owners survives until both are gone', async () => {
    const store = new MemoryCollectStore(kinds)
    store.add('configmaps', plain('owner'))
    store.add('configmaps', plain('other'))
    store.add('secrets', owned('child', ['owner', 'other']))
    start(store)
    await deleteOwner(store, 'Background')
    await expect
      .poll(() => store.find('secrets', 'child')?.metadata?.ownerReferences?.map(({ uid }) => uid))
      .toEqual(['other'])
    await store.delete(refOf('configmaps', store.find('configmaps', 'other')!))
    await expect.poll(() => store.names('secrets')).toEqual([])
  })

  it.each<{ when: string; owner?: KubeObject; left: string[] }>([
    { when: 'its owner never existed', left: [] },
    { when: 'its owner lives in another namespace', owner: plain('owner', 'elsewhere'), left: [] },
    { when: 'its owner is cluster-scoped', owner: { metadata: { name: 'owner' } }, left: ['child'] },
  ])('check 99: at the start, a dependent when $when', async ({ owner, left }) => {
    const store = new MemoryCollectStore(kinds)
    if (owner) store.add(owner.metadata?.namespace ? 'configmaps' : 'namespaces', owner)
    store.add('secrets', owned('child', ['owner']))
    start(store)
    await running?.idle()
    expect(store.names('secrets')).toEqual(left)
  })

  it('comes to rest: a second start changes nothing', async () => {
    const store = new MemoryCollectStore(kinds)
    store.add('configmaps', plain('owner'))
    store.add('secrets', owned('child', ['owner', 'gone']))
    store.add('services', { metadata: { name: 's', namespace: 'n' }, spec: { selector: { a: 'b' } } } as KubeObject)
    await start(store).idle()
    await running?.close()
    const writes = store.writes.length
    expect(writes).toBeGreaterThan(0)
    await start(store).idle()
    expect(store.writes).toHaveLength(writes)
  })
})

it('check 101: a namespace is emptied, then goes', async () => {
  const store = new MemoryCollectStore(kinds)
  store.add('namespaces', { metadata: { name: 'n' }, spec: { finalizers: ['kubernetes'] } } as KubeObject)
  store.add('configmaps', plain('a'))
  store.add('secrets', { metadata: { name: 'b', namespace: 'n', finalizers: ['held'] } })
  store.add('secrets', plain('c', 'elsewhere'))
  start(store)
  await store.delete(refOf('namespaces', store.find('namespaces', 'n')!))
  await expect.poll(() => store.names('configmaps')).toEqual([])
  expect(store.names('namespaces')).toEqual(['n'])
  await store.update(refOf('secrets', store.find('secrets', 'b')!), (object) => ({
    ...object,
    metadata: { ...object.metadata, finalizers: [] },
  }))
  await expect.poll(() => store.names('namespaces')).toEqual([])
  expect(store.names('secrets')).toEqual(['c'])
})

it('check 102: a definition goes after its objects', async () => {
  const store = new MemoryCollectStore(kinds)
  store.add(CRDS, {
    metadata: { name: 'things.example.org', finalizers: ['customresourcecleanup.apiextensions.k8s.io'] },
  })
  store.add('things.example.org', plain('t'))
  start(store)
  await store.delete(refOf(CRDS, store.find(CRDS, 'things.example.org')!))
  await expect.poll(() => [store.names(CRDS), store.names('things.example.org')]).toEqual([[], []])
})

it('events go an hour after they were last seen', async () => {
  const store = new MemoryCollectStore(kinds)
  const event = (name: string, lastTimestamp: string): KubeObject =>
    ({ metadata: { name, namespace: 'n', creationTimestamp: '2025-12-31T22:00:00Z' }, lastTimestamp }) as KubeObject
  store.add('events', event('old', '2025-12-31T22:59:59Z'))
  store.add('events', event('recent', '2025-12-31T23:30:00Z'))
  start(store)
  await expect.poll(() => store.names('events')).toEqual(['recent'])
})

describe('check 128: endpoint slices', () => {
  const service = {
    metadata: { name: 'web', namespace: 'n' },
    spec: { clusterIP: 'None', selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }] },
  } as KubeObject
  const pod = (name: string, ready: boolean, more: object = {}): KubeObject =>
    ({
      metadata: { name, namespace: 'n', labels: { app: 'web' } },
      spec: { nodeName: 'node', containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 8080 }] }] },
      status: {
        podIP: '10.0.0.1',
        phase: 'Running',
        conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      },
      ...more,
    }) as KubeObject
  const endpoints = (store: MemoryCollectStore): unknown =>
    (store.list(SLICES) as EndpointSlice[])
      .flatMap((slice) => slice.endpoints ?? [])
      .map((each) => [each.targetRef?.name, each.conditions?.ready])

  it('follow the readiness of the pods a service selects', async () => {
    const store = new MemoryCollectStore(kinds)
    store.add('services', service)
    start(store)
    await expect.poll(() => store.list(SLICES)).toHaveLength(1)
    store.add('pods', pod('p', false))
    await expect.poll(() => endpoints(store)).toEqual([['p', false]])
    store.change('pods', 'p', () => ({ ...pod('p', true), metadata: { ...pod('p', true).metadata, uid: 'p' } }))
    await expect.poll(() => endpoints(store)).toEqual([['p', true]])
    expect(store.list(SLICES).at(-1)).toMatchObject({
      metadata: {
        labels: { 'kubernetes.io/service-name': 'web', 'service.kubernetes.io/headless': '' },
        ownerReferences: [{ kind: 'Service', name: 'web' }],
      },
      addressType: 'IPv4',
      ports: [{ name: '', port: 8080, protocol: 'TCP' }],
      endpoints: [{ addresses: ['10.0.0.1'], nodeName: 'node', targetRef: { kind: 'Pod', name: 'p', uid: 'p' } }],
    })
    store.change('pods', 'p', (object) => ({ ...object, metadata: { ...object.metadata, labels: {} } }))
    await expect.poll(() => endpoints(store)).toEqual([])
    expect(store.list(SLICES)).toHaveLength(1)
  })

  it('leave out pods that ended, and slices that others made', async () => {
    const store = new MemoryCollectStore(kinds)
    const ended: Pod = { ...pod('done', true), status: { phase: 'Succeeded', podIP: '10.0.0.2' } }
    store.add('services', service)
    store.add('pods', ended)
    store.add(SLICES, { metadata: { name: 'mine', namespace: 'n', labels: { 'kubernetes.io/service-name': 'web' } } })
    await start(store).idle()
    expect(endpoints(store)).toEqual([])
    expect(store.names(SLICES)).toContain('mine')
  })
})
