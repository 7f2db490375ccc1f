import { NetworkPolicies, Pods, SandboxClaims, Sandboxes, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import { expect, it } from 'vitest'
import {
  claim,
  createPool,
  fullPool,
  namespace,
  pool,
  readyClaim,
  readySandbox,
  sandbox,
  startTestCluster,
  template,
} from './cluster.js'

it('S3-1: a Sandbox becomes Ready with a Pod of its own name', async () => {
  await using cluster = await startTestCluster()
  await cluster.startManager()
  await cluster.client.create(Sandboxes, sandbox('box', { service: true }))
  const ready = await readySandbox(cluster.client, 'box')
  expect(ready.status?.podIPs).toHaveLength(1)
  expect(ready.status?.serviceFQDN).toBe('box.default.svc.cluster.local')
  const pod = await cluster.client.get(Pods, { name: 'box', namespace })
  expect(pod.metadata.ownerReferences).toEqual([
    expect.objectContaining({ kind: 'Sandbox', uid: ready.metadata.uid, controller: true, blockOwnerDeletion: true }),
  ])
})

it('S0-N1 S4-R5: a claim starts cold from an empty pool and becomes Ready', async () => {
  await using cluster = await startTestCluster()
  await cluster.startManager()
  await createPool(cluster.client, 0)
  await cluster.client.create(SandboxClaims, claim('cold'))
  const ready = await readyClaim(cluster.client, 'cold')
  expect(ready.status?.sandbox?.name).toBe('cold')
})

it('S3-8 S4-P3.3: a claim adopts a warm sandbox and the pool fills up again', async () => {
  await using cluster = await startTestCluster()
  await cluster.startManager()
  await createPool(cluster.client, 2)
  await fullPool(cluster.client, 2)
  const members = await cluster.client.list(Sandboxes, { namespace })
  await cluster.client.create(SandboxClaims, claim('warm'))
  const ready = await readyClaim(cluster.client, 'warm')
  expect(members.items.map((item) => item.metadata.name)).toContain(ready.status?.sandbox?.name)
  await fullPool(cluster.client, 2)
  await expect.poll(async () => (await cluster.client.list(Sandboxes, { namespace })).items.length).toBe(3)
})

it('a template gets its network policy', async () => {
  await using cluster = await startTestCluster({ node: false })
  await cluster.startManager()
  await cluster.client.create(SandboxTemplates, template())
  await expect
    .poll(() => cluster.client.find(NetworkPolicies, { name: 'tmpl-network-policy', namespace }))
    .toBeDefined()
})

it('deleting pool and claim leaves nothing behind', async () => {
  await using cluster = await startTestCluster()
  await cluster.startManager()
  await createPool(cluster.client, 2)
  await fullPool(cluster.client, 2)
  await cluster.client.create(SandboxClaims, claim('gone'))
  await readyClaim(cluster.client, 'gone')
  await cluster.client.delete(SandboxWarmPools, { name: pool().metadata?.name ?? '', namespace })
  await cluster.client.delete(SandboxClaims, { name: 'gone', namespace })
  await expect.poll(async () => (await cluster.client.list(Sandboxes, { namespace })).items.length).toBe(0)
  await expect.poll(async () => (await cluster.client.list(Pods, { namespace })).items.length).toBe(0)
})
