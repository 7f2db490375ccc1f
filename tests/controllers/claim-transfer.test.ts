import { nameHash, SandboxClaims, Sandboxes, SandboxTemplates } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { claim, condition } from './cluster.js'
import { ownerRef, readyStatus, ref } from './objects.js'
import { type Passes, patchOf, refusal, refuse } from './passes.js'
import {
  assigned,
  boundTo,
  launchType,
  line,
  member,
  newClaim,
  readClaim,
  started,
  unreachable,
} from './warm-claims.js'

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

  it('scenario 139: the status patch is locked, and a conflict is dropped: no error, only a later look', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = refuse(patchOf('/sandboxclaims/c/status'), refusal(409, 'Conflict'))
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: 500 })
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
