import { nameHash, Pods, type Sandbox, Sandboxes, type Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { namespace, sandbox } from './cluster.js'
import { foreignOwner, ownerRef, pod, readyStatus, ref, setPodStatus, setSandboxStatus } from './objects.js'
import type { Passes } from './passes.js'
import {
  allReady,
  creates,
  deletes,
  editTemplate,
  members,
  minuteMs,
  readPool,
  scaleTo,
  settle,
  sizeAt,
  started,
} from './pool-passes.js'

describe('size', () => {
  it('scenario 151: nil, three and zero replicas', async () => {
    await using passes = await started(undefined)
    await settle(passes)
    expect(await members(passes)).toHaveLength(1)
    expect([await sizeAt(passes, 3), await sizeAt(passes, 0)]).toEqual([3, 0])
    expect((await readPool(passes)).status?.selector).toBe(`agents.x-k8s.io/warm-pool-sandbox=${nameHash('pool')}`)
  })

  it('scenario 152: an old view creates nothing twice, nor do passes side by side', async () => {
    await using passes = await started(3)
    await passes.refresh()
    for (let count = 0; count < 5; count += 1) await passes.pool('pool', 'stale')
    await Promise.all(Array.from({ length: 8 }, () => passes.pool('pool', 'stale')))
    expect(creates(passes)).toBe(3)
    await settle(passes)
    expect(creates(passes)).toBe(3)
  })

  it('scenario 153: a terminating member still counts against a new one', async () => {
    await using passes = await started(2)
    await settle(passes)
    const [first] = await members(passes)
    const name = first?.metadata.name ?? ''
    await passes.client.patch(Sandboxes, ref(name), {
      type: 'merge',
      body: { metadata: { finalizers: ['test/hold'] } },
    })
    await passes.client.delete(Sandboxes, ref(name))
    passes.writes.length = 0
    await passes.pool('pool')
    expect(creates(passes)).toBe(0)
    expect((await readPool(passes)).status?.replicas).toBe(1)
    await passes.client.patch(Sandboxes, ref(name), { type: 'merge', body: { metadata: { finalizers: null } } })
    await passes.pool('pool')
    expect(creates(passes)).toBe(1)
  })

  it('gives up members that are not Ready first, then the youngest', async () => {
    await using passes = await started(3)
    await settle(passes)
    const all = await members(passes)
    for (const { metadata } of all.slice(0, 2)) await setSandboxStatus(passes.client, metadata.name, readyStatus())
    await scaleTo(passes, 2)
    await settle(passes)
    expect((await members(passes)).map(({ metadata }) => metadata.name)).not.toContain(all[2]?.metadata.name)
  })

  it('scenario 159: a member that is gone already is no error', async () => {
    await using passes = await started(2)
    await settle(passes)
    await scaleTo(passes, 0)
    await passes.refresh()
    for (const { metadata } of await members(passes)) await passes.client.delete(Sandboxes, ref(metadata.name))
    await expect(passes.pool('pool', 'stale')).resolves.toBeDefined()
    expect(passes.expectations.isSatisfied(`${namespace}/pool`)).toBe(true)
  })

  it('scenario 171: the generation is reported and counters that fall to zero vanish', async () => {
    await using passes = await started(1)
    await settle(passes)
    await allReady(passes)
    await settle(passes)
    expect((await readPool(passes)).status).toMatchObject({ replicas: 1, readyReplicas: 1, observedGeneration: 1 })
    await scaleTo(passes, 0)
    await settle(passes)
    expect((await readPool(passes)).status).toEqual({ selector: expect.any(String), observedGeneration: 2 })
  })

  it('a member that a claim has taken is never deleted by the pool that saw it last', async () => {
    await using passes = await started(2)
    await settle(passes)
    await scaleTo(passes, 0)
    await passes.refresh()
    const [taken] = await members(passes)
    const owner = {
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxClaim',
      name: 'c',
      uid: 'c',
      controller: true,
    }
    await passes.client.patch(Sandboxes, ref(taken?.metadata.name ?? ''), {
      type: 'merge',
      body: { metadata: { ownerReferences: [owner] } },
    })
    await passes.pool('pool', 'stale')
    await settle(passes)
    expect((await members(passes)).map(({ metadata }) => metadata.name)).toEqual([taken?.metadata.name])
    expect(passes.expectations.isSatisfied(`${namespace}/pool`)).toBe(true)
  })
})

describe('who belongs', () => {
  const labels = {
    'agents.x-k8s.io/warm-pool-sandbox': nameHash('pool'),
    'agents.x-k8s.io/sandbox-template-ref-hash': nameHash('tmpl'),
  }
  const secure = {
    automountServiceAccountToken: false,
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['8.8.8.8', '1.1.1.1'] },
  }
  const orphan = (name: string, image: string, metadata: object = {}): Sandbox => ({
    ...sandbox(name, { podTemplate: { spec: { containers: [{ name: 'main', image }], ...secure } } }),
    metadata: { name, namespace, labels, ...metadata },
  })

  it('scenario 154: an orphan of our content is taken in, one of other content deleted, a foreign one ignored', async () => {
    await using passes = await started(1)
    await passes.client.create(Sandboxes, orphan('same', 'busybox:1'))
    await passes.client.create(Sandboxes, orphan('other', 'busybox:2'))
    await passes.client.create(Sandboxes, orphan('foreign', 'busybox:1', { ownerReferences: [foreignOwner] }))
    await settle(passes)
    const left = await members(passes)
    expect(left.map(({ metadata }) => metadata.name).sort()).toEqual(['foreign', 'same'])
    const same = left.find(({ metadata }) => metadata.name === 'same')
    expect(same?.metadata.labels?.['agents.x-k8s.io/launch-type']).toBe('warm')
    expect(same?.metadata.ownerReferences).toEqual([ownerRef(await readPool(passes))])
  })

  it('an orphan that changed while its pool looked at it is looked at again, since nothing else would bring it back', async () => {
    await using passes = await started(0)
    await settle(passes)
    await passes.client.create(Sandboxes, orphan('other', 'busybox:2'))
    await passes.refresh()
    await setSandboxStatus(passes.client, 'other', readyStatus())
    expect((await passes.pool('pool', 'stale')).requeueAfterMs).toBeLessThan(5_000)
    expect((await members(passes)).map(({ metadata }) => metadata.name)).toEqual(['other'])
    await settle(passes)
    expect(await members(passes)).toEqual([])
  })

  it('the members it makes carry hashes, owner and eviction mark', async () => {
    await using passes = await started(1)
    await settle(passes)
    const [made] = await members(passes)
    expect(made?.metadata.name).toMatch(/^pool-/)
    expect(made?.metadata.labels).toMatchObject({
      ...labels,
      'agents.x-k8s.io/launch-type': 'warm',
      'agents.x-k8s.io/created-by': 'controller',
    })
    expect(made?.metadata.labels?.['agents.x-k8s.io/sandbox-template-hash']).toMatch(/^[0-9a-f]{8}$/)
    expect(made?.spec.podTemplate.metadata?.annotations).toEqual({
      'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true',
    })
    expect(made?.spec.podTemplate.spec).toMatchObject(secure)
  })

  it.each([
    { flag: true, own: undefined, mark: 'true' },
    { flag: false, own: undefined, mark: undefined },
    { flag: true, own: 'false', mark: 'false' },
    { flag: false, own: 'false', mark: 'false' },
    { flag: true, own: 'true', mark: 'true' },
    { flag: false, own: 'true', mark: 'true' },
  ])('scenario 165: eviction flag $flag and template $own give $mark', async ({ flag, own, mark }) => {
    await using passes = await started(1, {}, (options) => {
      options.pool.markEvictable = flag
    })
    const key = 'cluster-autoscaler.kubernetes.io/safe-to-evict'
    if (own) await editTemplate(passes, { podTemplate: { metadata: { annotations: { [key]: own } } } })
    await settle(passes)
    expect((await members(passes))[0]?.spec.podTemplate.metadata?.annotations?.[key]).toBe(mark)
  })
})

describe('members that do not become Ready', () => {
  const born = async (passes: Passes): Promise<Stored<Sandbox>> => {
    await settle(passes)
    const [made] = await members(passes)
    if (!made) throw new Error('no member')
    passes.nowMs = Date.parse(made.metadata.creationTimestamp)
    passes.writes.length = 0
    return made
  }

  it('scenario 155: one past its grace is deleted, and replaced once its deletion was seen', async () => {
    await using passes = await started(1)
    const first = await born(passes)
    passes.nowMs += 2 * minuteMs
    await passes.pool('pool')
    expect(deletes(passes)).toBe(0)
    passes.nowMs += 8 * minuteMs
    await passes.pool('pool')
    expect([deletes(passes), creates(passes)]).toEqual([1, 0])
    await passes.pool('pool')
    expect(creates(passes)).toBe(1)
    expect((await members(passes))[0]?.metadata.uid).not.toBe(first.metadata.uid)
  })

  it('scenario 156: one that no node fits is kept, reported once, and cleared once', async () => {
    await using passes = await started(1)
    const { metadata } = await born(passes)
    await passes.client.create(Pods, pod(metadata.name))
    await setPodStatus(passes.client, metadata.name, {
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
    })
    passes.nowMs += 10 * minuteMs
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: minuteMs })
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: minuteMs })
    expect(passes.events).toEqual([
      {
        type: 'Warning',
        reason: 'WarmPoolNotProgressing',
        action: 'Reconciling',
        note: '1/1 sandboxes are unschedulable past the 5m0s readiness grace period; holding them instead of replacing (replacements would be equally unschedulable)',
      },
    ])
    await setSandboxStatus(passes.client, metadata.name, readyStatus())
    expect(await passes.pool('pool')).toEqual({})
    expect(passes.events.at(-1)).toEqual({
      type: 'Normal',
      reason: 'WarmPoolProgressing',
      action: 'Reconciling',
      note: 'Warm pool is progressing again',
    })
  })

  it('scenarios 157, 158: the next look is due when the oldest runs out of grace', async () => {
    await using passes = await started(1, {}, (options) => {
      options.pool.readinessGraceMs = 10 * minuteMs
      options.pool.unschedulableRecheckMs = 30_000
    })
    const { metadata } = await born(passes)
    passes.nowMs += 6 * minuteMs
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: 4 * minuteMs + 2_000 })
    await setSandboxStatus(passes.client, metadata.name, readyStatus())
    expect(await passes.pool('pool')).toEqual({})
  })
})
