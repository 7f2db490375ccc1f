import { Sandboxes, SandboxTemplates, type SandboxWarmPool, SandboxWarmPools } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { namespace, pool, template } from './cluster.js'
import { ref } from './objects.js'
import { type Passes, refusal, refuse } from './passes.js'
import { allReady, creates, editTemplate, members, settle, sizeAt, started } from './pool-passes.js'

describe('template changes', () => {
  const newImage = { podTemplate: { spec: { containers: [{ name: 'main', image: 'busybox:2' }] } } }
  const recreate: Partial<SandboxWarmPool['spec']> = { updateStrategy: { type: 'Recreate' } }

  it('scenario 160: Recreate replaces members, OnReplenish keeps them until one goes', async () => {
    await using passes = await started(2, recreate)
    await settle(passes)
    const before = (await members(passes)).map(({ metadata }) => metadata.uid)
    await editTemplate(passes, newImage)
    await settle(passes)
    const after = await members(passes)
    expect(after).toHaveLength(2)
    for (const { metadata, spec } of after) {
      expect(before).not.toContain(metadata.uid)
      expect(spec.podTemplate.spec.containers?.[0]?.image).toBe('busybox:2')
    }
    await passes.client.patch(SandboxWarmPools, ref('pool'), {
      type: 'merge',
      body: { spec: { updateStrategy: { type: 'OnReplenish' } } },
    })
    await editTemplate(passes, { podTemplate: { spec: { containers: [{ name: 'main', image: 'busybox:3' }] } } })
    await settle(passes)
    expect((await members(passes)).map(({ metadata }) => metadata.uid).sort()).toEqual(
      after.map(({ metadata }) => metadata.uid).sort(),
    )
    await passes.client.delete(Sandboxes, ref(after[0]?.metadata.name ?? ''))
    await settle(passes)
    const images = (await members(passes)).map(({ spec }) => spec.podTemplate.spec.containers?.[0]?.image)
    expect(images.sort()).toEqual(['busybox:2', 'busybox:3'])
  })

  it('scenario 161: another template of the same content counts as new', async () => {
    await using passes = await started(1, recreate)
    await settle(passes)
    const [before] = await members(passes)
    await passes.client.create(SandboxTemplates, template('second'))
    await passes.client.patch(SandboxWarmPools, ref('pool'), {
      type: 'merge',
      body: { spec: { sandboxTemplateRef: { name: 'second' } } },
    })
    await settle(passes)
    const [after] = await members(passes)
    expect(after?.metadata.uid).not.toBe(before?.metadata.uid)
    expect(after?.metadata.annotations?.['agents.x-k8s.io/sandbox-template-ref']).toBe('second')
  })

  const volumes = [{ metadata: { name: 'data', labels: { a: '1' } }, spec: { accessModes: ['ReadWriteOnce'] } }]
  it.each([
    { when: 'pod metadata', change: { podTemplate: { metadata: { labels: { a: '1' } } } }, rolls: false },
    {
      when: 'volume metadata',
      change: { volumeClaimTemplates: [{ ...volumes[0], metadata: { name: 'data' } }] },
      rolls: false,
    },
    {
      when: 'a volume more',
      change: { volumeClaimTemplates: [...volumes, { metadata: { name: 'b' }, spec: {} }] },
      rolls: true,
    },
    {
      when: 'another volume name',
      change: { volumeClaimTemplates: [{ metadata: { name: 'b' }, spec: { accessModes: ['ReadWriteOnce'] } }] },
      rolls: true,
    },
    { when: 'the service', change: { service: true }, rolls: true },
    {
      when: 'the token, spelled out',
      change: { podTemplate: { spec: { automountServiceAccountToken: false } } },
      rolls: false,
    },
  ])('scenarios 162, 163: a change of $when, members replaced: $rolls', async ({ change, rolls }) => {
    await using passes = await started(1, recreate)
    await editTemplate(passes, { volumeClaimTemplates: volumes })
    await settle(passes)
    const [before] = await members(passes)
    await editTemplate(passes, change)
    await settle(passes)
    const [after] = await members(passes)
    expect(after?.metadata.uid !== before?.metadata.uid).toBe(rolls)
  })

  it('scenario 164: of two pools only the one whose template changed is renewed', async () => {
    await using passes = await started(1, recreate)
    await passes.client.create(SandboxTemplates, template('second'))
    await passes.client.create(
      SandboxWarmPools,
      pool('pool-2', 1, { ...recreate, sandboxTemplateRef: { name: 'second' } }),
    )
    await settle(passes)
    await passes.pool('pool-2')
    await passes.pool('pool-2')
    const before = new Map(
      (await members(passes)).map(({ metadata }) => [metadata.ownerReferences?.[0]?.name, metadata.uid]),
    )
    await editTemplate(passes, newImage)
    await settle(passes)
    await passes.pool('pool-2')
    const after = new Map(
      (await members(passes)).map(({ metadata }) => [metadata.ownerReferences?.[0]?.name, metadata.uid]),
    )
    expect(after.get('pool-2')).toBe(before.get('pool-2'))
    expect(after.get('pool')).not.toBe(before.get('pool'))
  })

  it('a missing template stops additions, not subtractions', async () => {
    await using passes = await started(1)
    await settle(passes)
    await passes.client.delete(SandboxTemplates, ref('tmpl'))
    expect([await sizeAt(passes, 3), await sizeAt(passes, 0)]).toEqual([1, 0])
  })
})

describe('pacing', () => {
  const adopt = async (passes: Passes, count: number): Promise<void> => {
    const owner = {
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxClaim',
      name: 'c',
      uid: 'c',
      controller: true,
    }
    const free = (await members(passes)).filter(
      ({ metadata }) => metadata.ownerReferences?.[0]?.kind === 'SandboxWarmPool',
    )
    for (const { metadata } of free.slice(0, count)) {
      await passes.client.patch(Sandboxes, ref(metadata.name), {
        type: 'merge',
        body: { metadata: { ownerReferences: [owner], labels: { 'agents.x-k8s.io/warm-pool-sandbox': null } } },
      })
    }
  }

  it('scenario 167: members that left are replaced after the delay, which starts anew with every one that leaves', async () => {
    await using passes = await started(4, {}, (options) => {
      options.pool.replenishDelayMs = 5_000
    })
    await settle(passes)
    expect(creates(passes), 'the first fill is not held').toBe(4)
    await allReady(passes)
    await settle(passes)
    passes.writes.length = 0
    await adopt(passes, 2)
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: 5_000 })
    passes.nowMs += 2_000
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: 3_000 })
    await adopt(passes, 1)
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: 5_000 })
    expect(creates(passes)).toBe(0)
    passes.nowMs += 5_000
    await passes.pool('pool')
    expect(creates(passes)).toBe(3)
  })

  it('a claimed member has the machine to itself for a while, which further claims do not extend', async () => {
    await using passes = await started(4, {}, (options) => {
      options.pool.settleMs = 1_000
    })
    await settle(passes)
    expect(creates(passes), 'the first fill is not held').toBe(4)
    await allReady(passes)
    await settle(passes)
    passes.writes.length = 0
    await adopt(passes, 1)
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: 1_000 })
    passes.nowMs += 600
    await adopt(passes, 1)
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: 400 })
    expect(creates(passes)).toBe(0)
    passes.nowMs += 400
    await passes.pool('pool')
    expect(creates(passes)).toBe(2)
  })

  it('a pool whose last member was claimed is refilled at once', async () => {
    await using passes = await started(2, {}, (options) => {
      options.pool.settleMs = 1_000
    })
    await settle(passes)
    await allReady(passes)
    await settle(passes)
    passes.writes.length = 0
    await adopt(passes, 1)
    expect(await passes.pool('pool')).toEqual({ requeueAfterMs: 1_000 })
    await adopt(passes, 1)
    await passes.pool('pool')
    expect(creates(passes)).toBe(2)
  })

  it('scenario 168: the bucket lets whole tokens through', async () => {
    await using passes = await started(5, {}, (options) => {
      options.pool.maxRefillPerSecond = 2
    })
    passes.nowMs = Math.ceil(passes.nowMs / 1000) * 1000
    await passes.pool('pool')
    expect(creates(passes)).toBe(2)
    const second = await passes.pool('pool')
    expect([creates(passes), second.requeueAfterMs]).toEqual([2, 500])
    passes.nowMs += 500
    await passes.pool('pool')
    expect(creates(passes)).toBe(3)
    passes.nowMs += 1_000
    await passes.pool('pool')
    expect(creates(passes)).toBe(5)
  })

  it('scenario 169: tokens come back when the pass had to wait for its own writes', async () => {
    await using passes = await started(5, {}, (options) => {
      options.pool.maxRefillPerSecond = 2
    })
    await passes.refresh()
    passes.expectations.tryExpectCreations(`${namespace}/pool`, 1)
    expect(await passes.pool('pool', 'stale')).toEqual({ requeueAfterMs: 30_000 })
    passes.expectations.lowerCreations(`${namespace}/pool`)
    await passes.pool('pool')
    expect(creates(passes)).toBe(2)
  })

  it('scenario 166: a server that refuses everything is asked once', async () => {
    await using passes = await started(50)
    passes.fault = refuse(
      ({ method, path }) => method === 'POST' && path.endsWith('/sandboxes'),
      refusal(500, 'InternalError'),
    )
    await expect(passes.pool('pool')).rejects.toMatchObject({ code: 'InternalError', status: 500 })
    expect(creates(passes)).toBe(1)
    passes.fault = undefined
    await settle(passes)
    expect(await members(passes)).toHaveLength(50)
  })
})
