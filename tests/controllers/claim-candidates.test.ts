import { type Sandbox, Sandboxes, type SandboxStatus, SandboxTemplates } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { condition, namespace } from './cluster.js'
import { ownerRef, readyStatus, ref, setSandboxStatus } from './objects.js'
import { boundTo, line, member, newClaim, notReady, readClaim, started, unreachable } from './warm-claims.js'

describe('choosing a candidate', () => {
  it.each<{ when: string; members: [string, SandboxStatus][]; takes: string; left: number }>([
    {
      when: 'scenario 99: three are Ready',
      members: [
        ['a', readyStatus()],
        ['b', readyStatus()],
        ['d', readyStatus()],
      ],
      takes: 'a',
      left: 2,
    },
    {
      when: 'scenario 100: an older one is not Ready',
      members: [
        ['a', notReady],
        ['b', readyStatus()],
      ],
      takes: 'b',
      left: 1,
    },
    {
      when: 'scenario 101: none is Ready',
      members: [
        ['a', notReady],
        ['b', notReady],
      ],
      takes: 'a',
      left: 1,
    },
    {
      when: 'scenario 102: one node has more of them',
      members: [
        ['a', readyStatus('1', 'n1')],
        ['b', readyStatus('1', 'n2')],
        ['d', readyStatus('1', 'n2')],
      ],
      takes: 'b',
      left: 2,
    },
    {
      when: 'scenario 107: the first has no address',
      members: [
        ['a', unreachable],
        ['b', notReady],
      ],
      takes: 'b',
      left: 1,
    },
  ])('$when', async ({ members, takes, left }) => {
    await using passes = await started()
    for (const [name, status] of members) await member(passes, name, status)
    await newClaim(passes)
    expect(await passes.claim('c')).toEqual({})
    expect(await boundTo(passes)).toBe(takes)
    expect(passes.warm.size(line)).toBe(left)
  })

  it.each<{ when: string; change: Partial<NonNullable<Sandbox['metadata']>> }>([
    {
      when: 'somebody else controls it',
      change: {
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'SandboxWarmPool', name: 'pool', uid: 'x', controller: true }],
      },
    },
    { when: 'its labels are forged', change: { ownerReferences: [] } },
    {
      when: 'it is of another pool',
      change: {
        ownerReferences: [
          {
            apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
            kind: 'SandboxWarmPool',
            name: 'other',
            uid: 'x',
            controller: true,
          },
        ],
      },
    },
    { when: 'it is going', change: { finalizers: ['test/hold'] } },
  ])('scenario 103: it is passed over when $when', async ({ when, change }) => {
    await using passes = await started()
    await member(passes, 'a', readyStatus(), change)
    if (when === 'it is going') await passes.client.delete(Sandboxes, ref('a'))
    await newClaim(passes)
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('c')
    if (when === 'it is going')
      await passes.client.patch(Sandboxes, ref('a'), { type: 'merge', body: { metadata: { finalizers: null } } })
  })

  it('scenario 104: the version of the owner reference does not matter', async () => {
    await using passes = await started()
    await member(passes, 'a', readyStatus(), {
      ownerReferences: [ownerRef(passes.swp, { apiVersion: 'extensions.agents.x-k8s.io/v1alpha1' })],
    })
    await newClaim(passes)
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('a')
  })

  it('scenario 105: a young claim waits for an address, writing no condition, and then adopts', async () => {
    await using passes = await started()
    await member(passes, 'a', unreachable)
    const { metadata } = await newClaim(passes)
    passes.nowMs = Date.parse(metadata.creationTimestamp)
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: 100 })
    passes.nowMs += 1_950
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: 50 })
    expect((await readClaim(passes)).status?.conditions).toBeUndefined()
    expect([...passes.warm.aside(line)]).toEqual([{ key: `${namespace}/a`, nodeName: 'n9' }])
    await setSandboxStatus(passes.client, 'a', readyStatus())
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('a')
  })

  it('scenario 106: after two seconds it starts cold, and at once when the queue is empty', async () => {
    await using passes = await started()
    await member(passes, 'a', unreachable)
    const { metadata } = await newClaim(passes)
    passes.nowMs = Date.parse(metadata.creationTimestamp) + 2_000
    expect(await passes.claim('c')).toEqual({})
    expect(await boundTo(passes)).toBe('c')
  })

  it('scenarios 93, 96: variables need a cold start, a policy about volumes alone does not', async () => {
    await using passes = await started()
    await passes.client.patch(SandboxTemplates, ref('tmpl'), {
      type: 'merge',
      body: { spec: { envVarsInjectionPolicy: 'Allowed' } },
    })
    await member(passes, 'a')
    await newClaim(passes, 'c', { env: [{ name: 'A', value: '1' }] })
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('c')
    await newClaim(passes, 'd')
    await passes.claim('d')
    expect(await boundTo(passes, 'd')).toBe('a')
  })

  it.each<{ when: string; type: 'Recreate' | 'OnReplenish' | undefined; image: string; takes: string }>([
    { when: 'stale in a pool that recreates', type: 'Recreate', image: 'new', takes: 'c' },
    { when: 'of the same content in a pool that recreates', type: 'Recreate', image: 'busybox:1', takes: 'a' },
    { when: 'stale in a pool that replenishes', type: 'OnReplenish', image: 'new', takes: 'a' },
    { when: 'stale in a pool that says nothing', type: undefined, image: 'new', takes: 'a' },
  ])('scenario 111: $when', async ({ type, image, takes }) => {
    await using passes = await started(type ? { updateStrategy: { type } } : {})
    await member(passes, 'a')
    const spec = { podTemplate: { spec: { containers: [{ name: 'main', image }] } } }
    await passes.client.patch(SandboxTemplates, ref('tmpl'), { type: 'merge', body: { spec } })
    await newClaim(passes)
    await passes.claim('c')
    expect(await boundTo(passes)).toBe(takes)
  })

  it('scenario 112: without a template nobody can tell, so it goes back', async () => {
    await using passes = await started({ updateStrategy: { type: 'Recreate' } })
    await member(passes, 'a')
    await passes.client.delete(SandboxTemplates, ref('tmpl'))
    await newClaim(passes)
    await passes.claim('c')
    expect(passes.warm.size(line)).toBe(1)
    expect(condition(await readClaim(passes), 'Ready')?.reason).toBe('TemplateNotFound')
  })

  it('scenario 113: two warm ones and three claims', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await member(passes, 'b')
    for (const name of ['c1', 'c2', 'c3']) await newClaim(passes, name)
    await passes.refresh()
    await Promise.all(['c1', 'c2', 'c3'].map((name) => passes.claim(name, 'stale')))
    const bound = await Promise.all(['c1', 'c2', 'c3'].map((name) => boundTo(passes, name)))
    expect(bound.sort()).toEqual(['a', 'b', 'c3'])
  })
})
