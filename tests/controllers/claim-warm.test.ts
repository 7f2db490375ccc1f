import {
  nameHash,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxStatus,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { claim, condition, namespace, pool, sandbox, template } from './cluster.js'
import { ownerRef, readyStatus, ref, setSandboxStatus } from './objects.js'
import { type Passes, patchOf, refusal, refuse, startPasses } from './passes.js'

const assigned = 'agents.x-k8s.io/sandbox-name'
const launchType = 'agents.x-k8s.io/launch-type'

interface Warm extends Passes {
  swp: Stored<SandboxWarmPool>
}

async function started(
  spec: Partial<SandboxWarmPool['spec']> = {},
  options?: Parameters<typeof startPasses>[0],
): Promise<Warm> {
  const passes = await startPasses(options)
  await passes.client.create(SandboxTemplates, template())
  return Object.assign(passes, { swp: await passes.client.create(SandboxWarmPools, pool('pool', 0, spec)) })
}

/** A pool member as the pool controller makes it, with the given status. */
async function member(
  passes: Warm,
  name: string,
  status: SandboxStatus | undefined = readyStatus(),
  change: Partial<NonNullable<Sandbox['metadata']>> = {},
): Promise<Stored<Sandbox>> {
  const base = sandbox(name)
  const labels = {
    'agents.x-k8s.io/warm-pool-sandbox': nameHash('pool'),
    'agents.x-k8s.io/sandbox-template-ref-hash': nameHash('tmpl'),
    'agents.x-k8s.io/sandbox-template-hash': 'abc',
    'agents.x-k8s.io/sandbox-pod-template-hash': 'abc',
    [launchType]: 'warm',
    'agents.x-k8s.io/created-by': 'controller',
  }
  const made = await passes.client.create(Sandboxes, {
    ...base,
    metadata: {
      ...base.metadata,
      labels,
      annotations: { 'agents.x-k8s.io/sandbox-template-ref': 'tmpl' },
      ownerReferences: [ownerRef(passes.swp)],
      ...change,
    },
    spec: {
      podTemplate: {
        metadata: {
          annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true' },
          labels: { 'agents.x-k8s.io/warm-pool-sandbox': nameHash('pool') },
        },
        spec: {
          containers: [{ name: 'main', image: 'busybox:1' }],
          automountServiceAccountToken: false,
          dnsPolicy: 'None',
          dnsConfig: { nameservers: ['8.8.8.8', '1.1.1.1'] },
        },
      },
    },
  })
  const result = status ? await setSandboxStatus(passes.client, name, status) : made
  await passes.refresh() // the queue learns of members in the order in which they appear
  return result
}

const unreachable: SandboxStatus = { nodeName: 'n9' }
const notReady: SandboxStatus = { podIPs: ['10.0.0.9'] }
const readClaim = (passes: Passes, name = 'c'): Promise<Stored<SandboxClaim>> =>
  passes.client.get(SandboxClaims, ref(name))
const boundTo = async (passes: Passes, name = 'c'): Promise<string | undefined> =>
  (await readClaim(passes, name)).status?.sandbox?.name
const newClaim = (
  passes: Passes,
  name = 'c',
  change: Partial<SandboxClaim['spec']> = {},
): Promise<Stored<SandboxClaim>> => passes.client.create(SandboxClaims, claim(name, change))
const line = `${namespace}/pool`

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
    expect(passes.warm.take(line)).toEqual({ key: `${namespace}/a`, nodeName: 'n9' })
    passes.warm.add(line, { key: `${namespace}/a`, nodeName: 'n9' })
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

describe('the transfer', () => {
  it('scenario 108, as 1.0 has it: pool marks go, the claim owns it, everything in one pass', async () => {
    await using passes = await started()
    await member(passes, 'a', readyStatus('10.2.2.2'), {
      annotations: { kept: '1', 'agents.x-k8s.io/sandbox-template-ref': 'tmpl' },
    })
    await newClaim(passes)
    expect(await passes.claim('c')).toEqual({})
    const adopted = await passes.client.get(Sandboxes, ref('a'))
    const bound = await readClaim(passes)
    const { uid } = bound.metadata
    expect(adopted.metadata.labels).toEqual({
      [launchType]: 'warm',
      'agents.x-k8s.io/claim-uid': uid,
      'agents.x-k8s.io/sandbox-template-ref-hash': nameHash('tmpl'),
    })
    expect(adopted.metadata.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`)).toEqual(['SandboxClaim/c'])
    expect(adopted.metadata.annotations).toEqual({ kept: '1', 'agents.x-k8s.io/sandbox-template-ref': 'tmpl' })
    expect(adopted.spec.podTemplate.metadata?.labels).toEqual({
      'agents.x-k8s.io/claim-uid': uid,
      'agents.x-k8s.io/sandbox-template-ref-hash': nameHash('tmpl'),
    })
    expect(bound.metadata.annotations?.[assigned]).toBe('a')
    expect(bound.status?.sandbox).toEqual({ name: 'a', podIPs: ['10.2.2.2'] })
    expect(condition(bound, 'Ready')).toMatchObject({ status: 'True' })
    expect(passes.events).toEqual([
      { type: 'Normal', reason: 'SandboxAdopted', action: 'Adoption', note: 'Adopted warm pool Sandbox "a"' },
    ])
  })

  it('stays within the write budget: four writes of claim and Sandbox, then rest', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    await passes.claim('c')
    expect(passes.writes.map(({ what }) => what)).toEqual([
      'PATCH sandboxclaims/c',
      'PATCH sandboxes/a',
      'PATCH sandboxclaims/c/status',
      'PATCH sandboxclaims/c',
    ])
    passes.writes.length = 0
    expect(await passes.claim('c')).toEqual({})
    expect(await passes.claim('c')).toEqual({})
    expect(passes.writes).toEqual([])
  })

  it('scenario 139: the status patch is locked, and a conflict is dropped without a retry', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = refuse(patchOf('/sandboxclaims/c/status'), refusal(409, 'Conflict'))
    expect(await passes.claim('c')).toEqual({})
    const write = passes.writes.find(({ what }) => what.endsWith('/status'))
    expect(write?.body).toMatchObject({ metadata: { resourceVersion: expect.any(String) } })
    expect((await readClaim(passes)).status).toBeUndefined()
    expect(
      await passes.metrics.getSingleMetricAsString('agent_sandbox_claim_controller_startup_latency_ms'),
    ).not.toMatch(/_count\{/)
  })

  it.each([
    { when: "the template says 'false'", own: 'false', wanted: undefined, left: 'false' },
    { when: 'the pool put it there', own: undefined, wanted: undefined, left: undefined },
    { when: 'the claim asks for it', own: undefined, wanted: 'true', left: 'true' },
  ])('scenario 109: the eviction mark, when $when', async ({ own, wanted, left }) => {
    const mark = 'cluster-autoscaler.kubernetes.io/safe-to-evict'
    await using passes = await started()
    if (own) {
      const body = { spec: { podTemplate: { metadata: { annotations: { [mark]: own } } } } }
      await passes.client.patch(SandboxTemplates, ref('tmpl'), { type: 'merge', body })
    }
    await member(passes, 'a')
    await newClaim(passes, 'c', wanted ? { additionalPodMetadata: { annotations: { [mark]: wanted } } } : {})
    await passes.claim('c')
    expect((await passes.client.get(Sandboxes, ref('a'))).spec.podTemplate.metadata?.annotations?.[mark]).toBe(left)
  })

  it.each(['go-client', undefined])('scenario 110: the creator becomes %s', async (creator) => {
    const label = 'agents.x-k8s.io/created-by'
    await using passes = await started()
    await member(passes, 'a')
    const object = claim('c')
    await passes.client.create(SandboxClaims, {
      ...object,
      metadata: { ...object.metadata, ...(creator && { labels: { [label]: creator } }) },
    })
    await passes.claim('c')
    const adopted = await passes.client.get(Sandboxes, ref('a'))
    expect([adopted.metadata.labels?.[label], adopted.spec.podTemplate.metadata?.labels?.[label]]).toEqual([
      creator,
      creator,
    ])
  })
})

describe('recorded assignments', () => {
  const annotate = (passes: Passes, name: string): Promise<unknown> =>
    passes.client.patch(SandboxClaims, ref('c'), {
      type: 'merge',
      body: { metadata: { annotations: { [assigned]: name } } },
    })
  const label = (passes: Passes, name: string): Promise<unknown> =>
    passes.client.patch(SandboxClaims, ref('c'), {
      type: 'merge',
      body: { metadata: { labels: { [assigned]: name } } },
    })

  it('scenario 114, 115: a bound claim looks at no other member, and the launch type is filled in once', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    await passes.claim('c')
    await member(passes, 'b')
    await passes.client.patch(Sandboxes, ref('a'), {
      type: 'merge',
      body: { metadata: { labels: { [launchType]: null } } },
    })
    await passes.claim('c')
    expect((await passes.client.get(Sandboxes, ref('a'))).metadata.labels?.[launchType]).toBe('warm')
    expect(passes.warm.size(line)).toBe(1)
    await passes.client.patch(Sandboxes, ref('a'), {
      type: 'merge',
      body: { metadata: { labels: { [launchType]: 'cold' } } },
    })
    await passes.claim('c')
    expect((await passes.client.get(Sandboxes, ref('a'))).metadata.labels?.[launchType]).toBe('cold')
  })

  it('scenario 116: an interrupted transfer is completed, address or not', async () => {
    await using passes = await started()
    await member(passes, 'a', unreachable)
    await newClaim(passes)
    await annotate(passes, 'a')
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('a')
    expect(passes.events).toEqual([])
  })

  it.each([
    { carrier: 'annotation', set: annotate, apiVersion: 'extensions.agents.x-k8s.io/v1beta1' },
    { carrier: 'label', set: label, apiVersion: 'extensions.agents.x-k8s.io/v1alpha1' },
  ])("scenario 117: the $carrier names another claim's Sandbox", async ({ set, apiVersion }) => {
    await using passes = await started()
    await member(passes, 'a', readyStatus(), {
      ownerReferences: [{ apiVersion, kind: 'SandboxClaim', name: 'x', uid: 'x', controller: true }],
    })
    await newClaim(passes)
    await set(passes, 'a')
    await passes.claim('c')
    const { metadata } = await readClaim(passes)
    expect([metadata.annotations?.[assigned], metadata.labels?.[assigned]]).toEqual([undefined, undefined])
    expect(await boundTo(passes)).toBe('c')
    expect((await passes.client.get(Sandboxes, ref('a'))).metadata.ownerReferences?.[0]?.name).toBe('x')
  })

  it('scenario 118: the legacy label names a Sandbox of another pool', async () => {
    await using passes = await started()
    await member(passes, 'a', readyStatus(), { ownerReferences: [ownerRef(passes.swp, { name: 'other' })] })
    await newClaim(passes)
    await label(passes, 'a')
    await passes.claim('c')
    expect((await readClaim(passes)).metadata.labels?.[assigned]).toBeUndefined()
    expect(await boundTo(passes)).toBe('c')
  })

  it('scenario 119: the legacy label of a Sandbox of ours becomes the annotation', async () => {
    await using passes = await started()
    const { metadata } = await newClaim(passes)
    await member(passes, 'a', readyStatus(), {
      ownerReferences: [
        {
          apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
          kind: 'SandboxClaim',
          name: 'c',
          uid: metadata.uid,
          controller: true,
        },
      ],
    })
    await label(passes, 'a')
    await passes.claim('c')
    const after = (await readClaim(passes)).metadata
    expect([after.annotations?.[assigned], after.labels?.[assigned]]).toEqual(['a', undefined])
  })
})

describe('conflicts', () => {
  const sandboxPatches = (passes: Passes, name: string): number =>
    passes.writes.filter(({ what }) => what === `PATCH sandboxes/${name}`).length

  it('scenario 120: a conflict on the claim is settled in the same pass', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = refuse(patchOf('/sandboxclaims/c'), refusal(409, 'Conflict'), 1)
    expect(await passes.claim('c')).toEqual({})
    expect(await boundTo(passes)).toBe('a')
  })

  it('scenarios 121, 122: a conflict on the Sandbox is settled on that Sandbox and no other', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await member(passes, 'b')
    await newClaim(passes)
    const faults = [
      refuse(patchOf('/sandboxes/a'), refusal(409, 'Conflict'), 1),
      refuse(patchOf('/sandboxclaims/c'), refusal(409, 'Conflict'), 1),
    ]
    passes.fault = (request) => faults[0]?.(request) ?? faults[1]?.(request)
    expect(await passes.claim('c')).toEqual({})
    expect([sandboxPatches(passes, 'a'), sandboxPatches(passes, 'b')]).toEqual([2, 0])
    expect(await boundTo(passes)).toBe('a')
  })

  it('scenario 123: an old view costs one refused write per pass and changes nothing', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    await passes.refresh()
    await passes.claim('c', 'stale')
    const before = await readClaim(passes)
    const stale = passes.client.get(Sandboxes, ref('a'))
    passes.writes.length = 0
    for (let count = 0; count < 3; count += 1) await passes.claim('c', 'stale').catch(() => {})
    expect((await passes.client.get(Sandboxes, ref('a'))).metadata.resourceVersion).toBe(
      (await stale).metadata.resourceVersion,
    )
    expect((await readClaim(passes)).status).toEqual(before.status)
  })

  it('scenario 124: an assigned Sandbox that is gone frees the claim for another', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    await passes.client.patch(SandboxClaims, ref('c'), {
      type: 'merge',
      body: { metadata: { annotations: { [assigned]: 'a' } } },
    })
    await member(passes, 'spare')
    await passes.refresh()
    await passes.client.delete(Sandboxes, ref('a'))
    await expect(passes.claim('c', 'stale')).rejects.toMatchObject({ code: 'AdoptionConflict' })
    const { metadata, ...claimed } = await readClaim(passes)
    expect(metadata.annotations?.[assigned]).toBeUndefined()
    expect(condition(claimed, 'Ready')).toMatchObject({
      reason: 'AdoptionConflict',
      message:
        'adoption write conflict: sandbox a deleted before adoption completed; the next pass retries from a converged view',
    })
    expect(sandboxPatches(passes, 'spare')).toBe(0)
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('spare')
  })

  it("scenario 125: endless conflicts are reported without the server's text, and the assignment is kept", async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = refuse(patchOf('/sandboxes/a'), refusal(409, 'Conflict', 'the object has been modified'))
    await expect(passes.claim('c')).rejects.toMatchObject({ code: 'AdoptionConflict' })
    const after = await readClaim(passes)
    expect(after.metadata.annotations?.[assigned]).toBe('a')
    expect(condition(after, 'Ready')?.message).toContain('(conflicting concurrent write); the next pass retries')
    expect(condition(after, 'Ready')?.message).not.toContain('has been modified')
    passes.fault = undefined
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('a')
  })

  it('scenario 126: a clean-up that fails says so, keeps the assignment, and heals later', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    await passes.client.patch(SandboxClaims, ref('c'), {
      type: 'merge',
      body: { metadata: { annotations: { [assigned]: 'a' } } },
    })
    await passes.refresh()
    await passes.claim('nobody', 'stale')
    await passes.client.delete(Sandboxes, ref('a'))
    passes.fault = refuse(
      ({ method, path, body }) =>
        method === 'PATCH' && path.endsWith('/sandboxclaims/c') && JSON.stringify(body).includes('null'),
      refusal(500, 'InternalError', 'secret detail'),
    )
    await expect(passes.claim('c', 'stale')).rejects.toThrow('sandbox a deleted and reference cleanup failed')
    const after = await readClaim(passes)
    expect(after.metadata.annotations?.[assigned]).toBe('a')
    expect(condition(after, 'Ready')?.message).not.toContain('secret detail')
    passes.fault = undefined
    await passes.claim('c')
    expect((await readClaim(passes)).metadata.annotations?.[assigned]).toBeUndefined()
  })

  it('scenario 127: a stop in the middle is a stop, not a conflict, and leaves the assignment', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = (request) => {
      if (!patchOf('/sandboxes/a')(request)) return undefined
      passes.cancel(new Error('stopped'))
      return refusal(409, 'Conflict')
    }
    const failure = await passes.claim('c').catch((error: unknown) => error)
    expect(failure).not.toMatchObject({ code: 'AdoptionConflict' })
    const { metadata, status } = await readClaim(passes)
    expect([metadata.annotations?.[assigned], status]).toEqual(['a', undefined])
  })

  it('a member that fails to be taken is offered again', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = refuse(patchOf('/sandboxclaims/c'), refusal(500, 'InternalError'))
    await expect(passes.claim('c')).rejects.toThrow()
    expect(passes.warm.size(line)).toBe(1)
  })

  it('a crash between any two writes ends in the same binding', async () => {
    for (const diesAt of [1, 2, 3, 4]) {
      await using passes = await started()
      await member(passes, 'a')
      await member(passes, 'b')
      await newClaim(passes)
      let writes = 0
      passes.fault = ({ method }) => {
        if (method === 'GET') return undefined
        writes += 1
        return writes >= diesAt ? refusal(500, 'InternalError') : undefined
      }
      await passes.claim('c').catch(() => {})
      passes.fault = undefined
      passes.restart()
      await passes.claim('c')
      await passes.claim('c')
      const { items } = await passes.client.list(Sandboxes, { namespace })
      const owners = items.map((item) => item.metadata.ownerReferences?.[0]?.kind).sort()
      expect(owners, `died at write ${diesAt}`).toEqual(['SandboxClaim', 'SandboxWarmPool'])
      expect(condition(await readClaim(passes), 'Ready')?.status).toBe('True')
    }
  })
})

it('scenario 128: members and pools that go leave the queue', async () => {
  await using passes = await started()
  await member(passes, 'a')
  await member(passes, 'b')
  await passes.client.delete(Sandboxes, ref('a'))
  await passes.refresh()
  expect(passes.warm.size(line)).toBe(1)
  await passes.client.delete(SandboxWarmPools, ref('pool'))
  await passes.refresh()
  expect(passes.warm.size(line)).toBe(0)
})

describe('an assignment that another manager replaced', () => {
  it('survives a pass that still sees the old one, which led nowhere', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await member(passes, 'b')
    const { metadata, ...rest } = claim('c')
    await passes.client.create(SandboxClaims, {
      ...rest,
      metadata: { ...metadata, annotations: { [assigned]: 'gone' } },
    })
    await passes.refresh()
    const body = { metadata: { annotations: { [assigned]: 'b' } } }
    await passes.client.patch(SandboxClaims, ref('c'), { type: 'merge', body })

    await expect(passes.claim('c', 'stale')).rejects.toThrow('failed to remove stale sandbox reference')
    await passes.claim('c')

    expect((await passes.client.get(SandboxClaims, ref('c'))).metadata.annotations?.[assigned]).toBe('b')
    const { items } = await passes.client.list(Sandboxes, { namespace })
    const taken = items.filter((box) => box.metadata.ownerReferences?.[0]?.kind === 'SandboxClaim')
    expect(taken.map((box) => box.metadata.name)).toEqual(['b'])
  })
})
