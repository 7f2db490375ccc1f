import { KubeError, Pods, type SandboxClaim, SandboxClaims, Sandboxes, type Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import { claim, createPool, fullPool, isReady, namespace, startTestCluster } from './cluster.js'

/** A small generator with a seed, so that a failing run can be repeated. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const failures = [
  () => new KubeError('Conflict', 'made up', { status: 409 }),
  () => new KubeError('TooManyRequests', 'made up', { status: 429, retryAfterMs: 5 }),
  () => new KubeError('InternalError', 'made up', { status: 500 }),
  () => new KubeError('Timeout', 'made up', { status: 504 }),
]

it('random refusals of every tenth write change nothing about the end: one sandbox per claim, a full pool, no leak', async () => {
  await using cluster = await startTestCluster()
  const random = seeded(42)
  cluster.fault = ({ method }) => {
    if (method === 'GET' || random() > 0.1) return undefined
    return failures[Math.floor(random() * failures.length)]?.()
  }
  await cluster.startManager()
  await createPool(cluster.client, 10)
  await fullPool(cluster.client, 10)
  const names = Array.from({ length: 40 }, (_, index) => `c${index}`)
  await Promise.all(names.map((name) => cluster.client.create(SandboxClaims, claim(name))))
  const claims = async (): Promise<Stored<SandboxClaim>[]> =>
    (await cluster.client.list(SandboxClaims, { namespace })).items
  await expect.poll(async () => (await claims()).filter(isReady).length, { interval: 100 }).toBe(40)
  await expect
    .poll(async () => (await cluster.client.list(Sandboxes, { namespace })).items.length, {
      interval: 100,
    })
    .toBe(50)

  const bound = (await claims()).map((object) => object.status?.sandbox?.name)
  expect(new Set(bound).size).toBe(40)
  const { items } = await cluster.client.list(Sandboxes, { namespace })
  const owners = items.map((item) => item.metadata.ownerReferences?.find(({ controller }) => controller)?.uid)
  const claimUids = new Set((await claims()).map(({ metadata }) => metadata.uid))
  expect(owners.filter((uid) => uid !== undefined && claimUids.has(uid))).toHaveLength(40)
  await expect.poll(async () => (await cluster.client.list(Pods, { namespace })).items.length).toBe(50)
})

it('managers that die and come back leave every claim with one sandbox', async () => {
  await using cluster = await startTestCluster()
  await cluster.startManager()
  await createPool(cluster.client, 10)
  await fullPool(cluster.client, 10)
  const names = Array.from({ length: 30 }, (_, index) => `c${index}`)
  for (const [index, name] of names.entries()) {
    await cluster.client.create(SandboxClaims, claim(name))
    if (index % 10 !== 9) continue
    // Dies in the middle of its work: every write fails from here on, so nothing is tidied up.
    cluster.fault = ({ method }) => (method === 'GET' ? undefined : new Error('the process is gone'))
    await cluster.stopManager()
    cluster.fault = undefined
    await cluster.startManager()
  }
  const claims = async (): Promise<Stored<SandboxClaim>[]> =>
    (await cluster.client.list(SandboxClaims, { namespace })).items
  await expect.poll(async () => (await claims()).filter(isReady).length, { interval: 100 }).toBe(30)
  await expect
    .poll(async () => (await cluster.client.list(Sandboxes, { namespace })).items.length, {
      interval: 100,
    })
    .toBe(40)
  expect(new Set((await claims()).map((object) => object.status?.sandbox?.name)).size).toBe(30)
})
