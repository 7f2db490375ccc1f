import { defaultManagerOptions, startManager, startShadowPools } from '@corral/controllers'
import {
  EventsV1,
  Leases,
  type Pods,
  type Sandbox,
  SandboxClaims,
  SandboxClaimsV1alpha1,
  Sandboxes,
  SandboxTemplates,
  type Stored,
} from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { slimPod } from '../../packages/controllers/src/shared/cluster-state.js'
import { mergeDiff } from '../../packages/controllers/src/shared/merge-diff.js'
import { sandboxLabels } from '../../packages/controllers/src/shared/metrics.js'
import {
  claim,
  createPool,
  fullPool,
  namespace,
  readyClaim,
  readySandbox,
  sandbox,
  startTestCluster,
  template,
  waitFor,
} from './cluster.js'
import { ref } from './objects.js'

describe('the manager', () => {
  it('scenario 173: only the leader acts, and it hands the lease over when it stops', async () => {
    await using cluster = await startTestCluster()
    const manager = (identity: string) =>
      startManager({
        client: cluster.managerClient,
        options: { ...defaultManagerOptions(), leaderElection: { namespace, identity } },
      })
    const first = manager('first')
    await first.ready
    const lease = await cluster.client.get(Leases, ref('a3317529.agent-sandbox.x-k8s.io'))
    expect(lease.spec?.holderIdentity).toBe('first')
    const second = manager('second')
    await cluster.client.create(Sandboxes, sandbox('box'))
    await readySandbox(cluster.client, 'box')
    await first.stop()
    await second.ready
    await cluster.client.create(Sandboxes, sandbox('box-2'))
    await readySandbox(cluster.client, 'box-2')
    await second.stop()
  })

  it('ends with an error when an address is taken', async () => {
    await using cluster = await startTestCluster({ node: false })
    const endpoints = { metricsAddress: '127.0.0.1:0', healthAddress: '0', pprof: false, pprofDebug: false }
    const first = startManager({ client: cluster.client, options: { ...defaultManagerOptions(), endpoints } })
    const { metricsPort } = await first.endpoints
    const taken = { ...endpoints, metricsAddress: `127.0.0.1:${metricsPort}` }
    const second = startManager({ client: cluster.client, options: { ...defaultManagerOptions(), endpoints: taken } })
    await expect(second.done).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await first.stop()
  })

  it('scenario 179: more claims than warm sandboxes, all become Ready, none share one', async () => {
    await using cluster = await startTestCluster()
    await cluster.startManager()
    await createPool(cluster.client, 5)
    await fullPool(cluster.client, 5)
    const names = Array.from({ length: 20 }, (_, index) => `c${index}`)
    await Promise.all(names.map((name) => cluster.client.create(SandboxClaims, claim(name))))
    const ready = await Promise.all(names.map((name) => readyClaim(cluster.client, name)))
    expect(new Set(ready.map((object) => object.status?.sandbox?.name)).size).toBe(20)
    await fullPool(cluster.client, 5)
    const listed = async (): Promise<Stored<Sandbox>[]> => (await cluster.client.list(Sandboxes, { namespace })).items
    await expect.poll(async () => (await listed()).length).toBe(25)
    const items = await listed()
    const owners = items.map(
      (item) => item.metadata.ownerReferences?.find((owner) => owner.kind === 'SandboxClaim')?.uid,
    )
    const owned = owners.filter((uid) => uid !== undefined)
    expect(new Set(owned).size).toBe(owned.length)
  })

  it('two managers without an election fight over claims, and every claim gets one sandbox all the same', async () => {
    await using cluster = await startTestCluster()
    const managers = [1, 2].map(() => startManager({ client: cluster.managerClient, options: defaultManagerOptions() }))
    await Promise.all(managers.map((manager) => manager.ready))
    await createPool(cluster.client, 10)
    await fullPool(cluster.client, 10)
    const names = Array.from({ length: 30 }, (_, index) => `c${index}`)
    await Promise.all(names.map((name) => cluster.client.create(SandboxClaims, claim(name))))
    const ready = await Promise.all(names.map((name) => readyClaim(cluster.client, name)))
    expect(new Set(ready.map((object) => object.status?.sandbox?.name)).size).toBe(30)
    await fullPool(cluster.client, 10)
    const owners = (await cluster.client.list(Sandboxes, { namespace })).items.flatMap(
      (item) =>
        item.metadata.ownerReferences?.filter((owner) => owner.kind === 'SandboxClaim').map(({ uid }) => uid) ?? [],
    )
    expect(new Set(owners).size, 'one sandbox per claim').toBe(owners.length)
    await Promise.all(managers.map((manager) => manager.stop()))
  })

  it('comes to rest: after everything is Ready nothing is written any more', async () => {
    await using cluster = await startTestCluster()
    await cluster.startManager()
    await createPool(cluster.client, 3)
    await fullPool(cluster.client, 3)
    await cluster.client.create(SandboxClaims, claim('c'))
    await readyClaim(cluster.client, 'c')
    await fullPool(cluster.client, 3)
    await waitFor(
      cluster.client,
      SandboxClaims,
      'c',
      (object) => object.metadata.annotations?.['agents.x-k8s.io/claim-first-ready-at'] !== undefined,
    )
    const seen: number[] = []
    const isQuiet = (): boolean => seen.push(cluster.writes.length) > 1 && seen.at(-1) === seen.at(-2)
    await expect.poll(isQuiet, { interval: 300 }).toBe(true)
    await cluster.stopManager()
    cluster.writes.length = 0
    await cluster.startManager()
    await expect
      .poll(async () => (await cluster.manager?.metrics.getSingleMetricAsString('workqueue_depth'))?.match(/ [1-9]/))
      .toBeFalsy()
    await cluster.stopManager()
    expect(cluster.writes, 'a restart writes nothing either').toEqual([])
  })

  it('a v1alpha1 claim that names only a template works on the embedded API and says what to change', async () => {
    await using cluster = await startTestCluster()
    await cluster.startManager()
    const shadows = startShadowPools({ client: cluster.client })
    await shadows.ready
    await cluster.client.create(SandboxTemplates, template())
    await cluster.client.create(SandboxClaimsV1alpha1, {
      apiVersion: 'extensions.agents.x-k8s.io/v1alpha1',
      kind: 'SandboxClaim',
      metadata: { name: 'old', namespace },
      spec: { sandboxTemplateRef: { name: 'tmpl' } },
    })
    await readyClaim(cluster.client, 'old')
    await shadows.stop()
    const { items } = await cluster.client.list(EventsV1, { namespace })
    expect(items.find((event) => event.reason === 'ShadowPoolCreated')?.note).toContain('name it in spec.warmPoolRef')
  })
})

describe('scenario 177: the slim Pod', () => {
  it('gives the same metadata patch as the whole one and keeps its node', () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'p',
        uid: 'u',
        resourceVersion: '1',
        creationTimestamp: '',
        labels: { a: '1' },
        finalizers: ['x'],
        managedFields: [],
      },
      spec: { nodeName: 'n', containers: [{ name: 'c', image: 'x' }] },
    } satisfies Stored<(typeof Pods)['_type'] & object>
    const desired = { labels: { a: '2' } }
    expect(mergeDiff({ labels: slimPod(pod).metadata.labels }, desired)).toEqual(
      mergeDiff({ labels: pod.metadata.labels }, desired),
    )
    expect(slimPod(pod).spec).toEqual({ nodeName: 'n' })
    expect(slimPod(pod).metadata).not.toHaveProperty('finalizers')
  })
})

it('S3-U10, scenario 178: the gauge labels Sandboxes by state and owner', () => {
  const base = sandbox('a')
  const owner = {
    apiVersion: 'extensions.agents.x-k8s.io/v1alpha1',
    kind: 'SandboxWarmPool',
    name: 'p',
    uid: 'u',
    controller: true,
  }
  const object = {
    ...base,
    metadata: { ...base.metadata, labels: { 'agents.x-k8s.io/created-by': 'bogus' }, ownerReferences: [owner] },
  }
  expect(sandboxLabels(object as Stored<typeof base>)).toEqual({
    namespace,
    ready_condition: 'false',
    expired: 'false',
    launch_type: 'cold',
    sandbox_template: 'unknown',
    owned_by: 'SandboxWarmPool',
    created_by: 'unknown',
  })
})
