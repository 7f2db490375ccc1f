import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  APPLY,
  configMap,
  configMaps,
  MERGE,
  openServer,
  type ServerCaller,
} from '../testing/server-caller.test-suite.js'
import { dropRepeatedOwners } from './identity.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
  await api.call('POST', configMaps, configMap('kept'))
})
afterAll(() => api.server.close())

it('each owner is read a few times, however many there are: 20,000 would hold up everything else for a minute', () => {
  let reads = 0
  const ownerReferences = Array.from({ length: 1_000 }, (_, index) => ({
    get apiVersion() {
      reads += 1
      return 'v1'
    },
    kind: 'ConfigMap',
    name: `owner-${index}`,
    uid: index === 999 ? 'u' : `u${index}`,
  }))
  const warnings: string[] = []
  const metadata = { ownerReferences: [...ownerReferences, ownerReferences[999]!] }
  dropRepeatedOwners(metadata, warnings)
  expect(metadata.ownerReferences).toHaveLength(1_000)
  expect(warnings).toEqual([expect.stringMatching(/duplicate UID\(s\) observed: u$/)])
  expect(reads).toBeLessThan(5_000)
})

const kept = `${configMaps}/kept`
const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles'
const endpoints = '/api/v1/namespaces/default/endpoints'

describe('refused, because the body is not the object of the path or forges what only the server sets', () => {
  it.each<{ what: string; method?: string; url?: string; body: object; type?: string; status: number; says: RegExp }>([
    { what: 'PUT without a name', body: { data: {} }, status: 400, says: /kept based on URL.* name must be provided/ },
    {
      what: 'PUT of a namespace to finalize without a name',
      url: '/api/v1/namespaces/default/finalize',
      body: {},
      status: 400,
      says: /name must be provided/,
    },
    {
      what: 'a patch that takes the name away',
      method: 'PATCH',
      body: { metadata: { name: null } },
      status: 400,
      says: /name must be provided/,
    },
    {
      what: 'a patch that changes the name',
      method: 'PATCH',
      body: { metadata: { name: 'other' } },
      status: 400,
      says: /the name of the object \(other\) does not match the name on the URL \(kept\)/,
    },
    {
      what: 'a deletion time nobody asked for',
      method: 'PATCH',
      body: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
      status: 422,
      says: /metadata\.deletionTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable/,
    },
    {
      what: 'a grace period nobody asked for',
      body: { metadata: { name: 'kept', deletionGracePeriodSeconds: 5 } },
      status: 422,
      says: /metadata\.deletionGracePeriodSeconds: Invalid value: 5: field is immutable/,
    },
    {
      what: 'PUT that would create, with a uid',
      url: `${leases}/none`,
      body: { metadata: { name: 'none', uid: 'u' } },
      status: 409,
      says: /UID in precondition: u/,
    },
    {
      what: 'an apply that would create, with a uid',
      method: 'PATCH',
      url: `${configMaps}/none?fieldManager=me`,
      type: APPLY,
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'none', uid: 'u' } },
      status: 409,
      says: /uid mismatch: the provided object specified uid u, and no existing object was found/,
    },
    {
      what: 'the beginning of a name that no name may have',
      method: 'POST',
      url: configMaps,
      body: { metadata: { generateName: 'Bad_' } },
      status: 422,
      says: /metadata\.generateName: Invalid value: "Bad_".*metadata\.name: Invalid value: "Bad_/,
    },
    {
      what: 'an event for an owner',
      method: 'PATCH',
      body: { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Event', name: 'x', uid: 'u' }] } },
      status: 422,
      says: /Kind=Event is disallowed from being an owner/,
    },
    {
      what: 'an owner of no version',
      method: 'PATCH',
      body: { metadata: { ownerReferences: [{ apiVersion: 'apps/', kind: 'X', name: 'x', uid: 'u' }] } },
      status: 422,
      says: /metadata\.ownerReferences\.apiVersion: Invalid value: "apps\/": version must not be empty/,
    },
    {
      what: 'an applied list with one item twice',
      method: 'PATCH',
      url: `${kept}?fieldManager=me`,
      type: APPLY,
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept', finalizers: ['a.b/c', 'a.b/c'] } },
      status: 400,
      says: /duplicate entries for key "a\.b\/c"/,
    },
    {
      what: 'a delete with an object for its options',
      method: 'DELETE',
      body: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'kept' } },
      status: 400,
      says: /DeleteOptions/,
    },
    {
      what: 'a dry run of nothing in particular, which must not become a write',
      method: 'POST',
      url: `${configMaps}?dryRun=`,
      body: configMap('tried'),
      status: 422,
      says: /dryRun: Unsupported value: \[""\]: supported values: "All"/,
    },
    {
      what: 'an eviction that is something else',
      method: 'POST',
      url: '/api/v1/namespaces/default/pods/none/eviction',
      body: { kind: 'Pod', metadata: { name: 'none' } },
      status: 400,
      says: /expected kind \(Eviction\)/,
    },
    {
      what: 'a delete that tries something else than everything',
      method: 'DELETE',
      body: { dryRun: ['Some'] },
      status: 422,
      says: /dryRun: Unsupported value: \["Some"\]: supported values: "All"/,
    },
  ])('$what', async ({ method = 'PUT', url = kept, body, type, status, says }) => {
    const answer = await api.call(method, url, body, type ?? (method === 'PATCH' ? MERGE : undefined))
    expect([answer.status, answer.value.message]).toEqual([status, expect.stringMatching(says)])
    expect((await api.call('GET', kept)).value.metadata.deletionTimestamp).toBeUndefined()
  })
})

describe('accepted', () => {
  it.each([
    { what: 'a role', url: `${roles}/new`, body: { rules: [] } },
    { what: 'endpoints', url: `${endpoints}/new`, body: {} },
    { what: 'a lease, whatever version it is said to replace', url: `${leases}/new`, body: { spec: {} }, version: '5' },
  ])('PUT creates $what', async ({ url, body, version }) => {
    const metadata = { name: 'new', ...(version ? { resourceVersion: version } : {}) }
    expect((await api.call('PUT', url, { ...body, metadata })).status).toBe(201)
  })

  it('a name with a dash to be completed, and an apply at a version of an object that is not there', async () => {
    expect((await api.call('POST', configMaps, { metadata: { generateName: 'a-' } })).status).toBe(201)
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied', resourceVersion: '1' } }
    expect((await api.call('PATCH', `${configMaps}/applied?fieldManager=me`, body, APPLY)).status).toBe(201)
  })

  it('202 for the older way to say that dependents go too, while a finalizer holds the object', async () => {
    await api.call('POST', configMaps, { metadata: { name: 'held', finalizers: ['example.com/a'] } })
    expect((await api.call('DELETE', `${configMaps}/held`, { orphanDependents: false })).status).toBe(202)
    expect((await api.call('DELETE', `${configMaps}/held`)).status).toBe(200)
    await api.call('PATCH', `${configMaps}/held`, { metadata: { finalizers: null } }, MERGE)
  })

  it('the options of a delete from its body alone, but a dry run from anywhere', async () => {
    const pods = '/api/v1/namespaces/default/pods'
    const spec = { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] }
    await api.call('POST', pods, { metadata: { name: 'bound' }, spec })
    const grace = async (query: string, body?: object): Promise<number> =>
      (await api.call('DELETE', `${pods}/bound?dryRun=All&${query}`, body)).value.metadata.deletionGracePeriodSeconds
    expect(await grace('gracePeriodSeconds=5')).toBe(5)
    expect(await grace('gracePeriodSeconds=5', {})).toBe(30)
    expect(await grace('gracePeriodSeconds=5', { gracePeriodSeconds: 7 })).toBe(7)
    expect((await api.call('GET', `${pods}/bound`)).value.metadata.deletionTimestamp).toBeUndefined()
  })

  it('an owner that is named twice, once', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'kept', uid: 'u' }
    const ownerReferences = [owner, { ...owner, name: 'other' }, owner]
    const made = await api.call('POST', `${configMaps}?dryRun=All`, { metadata: { name: 'owned', ownerReferences } })
    expect(made.value.metadata.ownerReferences).toEqual([owner, { ...owner, name: 'other' }])
    expect(made.response.headers.warning).toMatch(/duplicate UID\(s\) observed: u"$/)
  })

  it('nobody for an empty list of managers', async () => {
    const { value } = await api.call('PATCH', kept, { metadata: { managedFields: [], labels: { a: 'b' } } }, MERGE)
    expect(value.metadata).toMatchObject({ labels: { a: 'b' } })
    expect(value.metadata.managedFields).toBeUndefined()
  })

  it('a status of a pod, but not its owners', async () => {
    const pods = '/api/v1/namespaces/default/pods'
    await api.call('POST', pods, { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } })
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u' }
    const body = { metadata: { labels: { a: 'b' }, ownerReferences: [owner] }, status: { phase: 'Running' } }
    const { value } = await api.call('PATCH', `${pods}/p/status`, body, MERGE)
    expect(value).toMatchObject({ metadata: { labels: { a: 'b' } }, status: { phase: 'Running' } })
    expect(value.metadata.ownerReferences).toBeUndefined()
  })
})

it.each([
  {
    kind: 'PersistentVolume',
    url: '/api/v1/persistentvolumes',
    body: { spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/x' } } },
  },
  { kind: 'StorageClass', url: '/apis/storage.k8s.io/v1/storageclasses', body: { provisioner: 'example.com/p' } },
])('a deleted $kind is answered with the object', async ({ kind, url, body }) => {
  await api.call('POST', url, { metadata: { name: 'gone' }, ...body })
  expect((await api.call('DELETE', `${url}/gone`)).value.kind).toBe(kind)
})
