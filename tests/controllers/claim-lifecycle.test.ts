import {
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxStatus,
  SandboxTemplates,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { concernsClaim } from '../../packages/controllers/src/sandbox-claim/index.js'
import { claim, condition, pool, sandbox, template } from './cluster.js'
import { readyStatus, ref, setSandboxStatus } from './objects.js'
import { type Passes, patchOf, refusal, refuse, startPasses } from './passes.js'

type Lifecycle = NonNullable<SandboxClaim['spec']['lifecycle']>

async function bound(
  lifecycle?: Lifecycle,
  options?: Parameters<typeof startPasses>[0],
  status?: SandboxStatus,
): Promise<Passes> {
  const passes = await startPasses(options)
  passes.nowMs = Math.floor(passes.nowMs / 1000) * 1000
  await passes.client.create(SandboxTemplates, template())
  await passes.client.create(SandboxWarmPools, pool('pool', 0))
  await passes.client.create(SandboxClaims, claim('c', lifecycle ? { lifecycle } : {}))
  await passes.claim('c')
  if (status) await setSandboxStatus(passes.client, 'c', status)
  return passes
}

const at = (passes: { nowMs: number }, ms: number): string =>
  new Date(passes.nowMs + ms).toISOString().replace(/\.\d+Z/, 'Z')
const finishedStatus = (passes: Passes, agoMs: number): SandboxStatus => ({
  conditions: [
    {
      type: 'Finished',
      status: 'True',
      reason: 'PodSucceeded',
      message: 'Pod completed successfully',
      lastTransitionTime: at(passes, -agoMs),
      observedGeneration: 1,
    },
    {
      type: 'Ready',
      status: 'False',
      reason: 'PodSucceeded',
      message: 'Pod completed successfully',
      lastTransitionTime: at(passes, -agoMs),
      observedGeneration: 1,
    },
  ],
})
const readClaim = (passes: Passes): Promise<Stored<SandboxClaim>> => passes.client.get(SandboxClaims, ref('c'))
const setLifecycle = (passes: Passes, lifecycle: object | null): Promise<unknown> =>
  passes.client.patch(SandboxClaims, ref('c'), { type: 'merge', body: { spec: { lifecycle } } })

describe('status', () => {
  it("scenario 130: Ready is the Sandbox's, with the claim's generation", async () => {
    await using passes = await bound(undefined, undefined, {
      conditions: [{ ...(readyStatus().conditions ?? [])[0], observedGeneration: 2 } as never],
      podIPs: ['1.1.1.1'],
    })
    await passes.claim('c')
    const { status } = await readClaim(passes)
    expect(status?.conditions).toEqual([{ ...(readyStatus().conditions ?? [])[0], observedGeneration: 1 }])
  })

  it('scenario 131: a failing metadata patch does not unbind the claim', async () => {
    await using passes = await bound(undefined, undefined, readyStatus())
    await passes.claim('c')
    const body = { metadata: { labels: { 'agents.x-k8s.io/created-by': 'go-client' } } }
    await passes.client.patch(SandboxClaims, ref('c'), { type: 'merge', body })
    passes.fault = refuse(patchOf('/sandboxes/c'), refusal(500, 'InternalError', 'boom'))
    await expect(passes.claim('c')).rejects.toThrow('failed to patch sandbox metadata for claim "c": boom')
    const { status } = await readClaim(passes)
    expect(status?.sandbox?.name).toBe('c')
    expect(condition({ status } as never, 'Ready')?.message).toBe(
      'Error seen: failed to patch sandbox metadata for claim "c": boom',
    )
  })

  it('a claim whose Sandbox somebody deleted is not Ready any more, and gets another Sandbox', async () => {
    const passes = await bound(undefined, undefined, readyStatus())
    await passes.claim('c')
    expect(condition(await readClaim(passes), 'Ready')?.status).toBe('True')
    const former = await passes.client.get(Sandboxes, ref('c'))
    await passes.client.delete(Sandboxes, ref('c'))
    await passes.claim('c')
    expect(condition(await readClaim(passes), 'Ready')?.status).toBe('False')
    await passes.claim('c')
    const next = await passes.client.get(Sandboxes, ref('c'))
    expect(next.metadata.uid).not.toBe(former.metadata.uid)
    await setSandboxStatus(passes.client, 'c', readyStatus())
    await passes.claim('c')
    expect(condition(await readClaim(passes), 'Ready')?.status).toBe('True')
  })

  it('mirrors a Sandbox that expired by itself', async () => {
    const ready = {
      type: 'Ready',
      status: 'False',
      reason: 'SandboxExpired',
      message: 'x',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    } as const
    await using passes = await bound(undefined, undefined, { conditions: [ready] })
    await passes.claim('c')
    expect(condition(await readClaim(passes), 'Ready')).toMatchObject({
      reason: 'SandboxExpired',
      message: 'Underlying Sandbox resource has expired independently of the Claim.',
    })
  })
})

describe('expiry', () => {
  it('S0-D7: the shutdown time stays with the claim, which keeps it; the Sandbox has none', async () => {
    await using passes = await bound()
    await setLifecycle(passes, { shutdownTime: at(passes, 60_000), shutdownPolicy: 'Retain' })
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: 60_000 })
    expect(JSON.stringify((await passes.client.get(Sandboxes, ref('c'))).spec)).not.toContain('shutdownTime')
    passes.nowMs += 61_000
    await passes.claim('c')
    expect(condition(await readClaim(passes), 'Ready')?.reason).toBe('ClaimExpired')
  })

  it('scenario 132: a finished Sandbox is mirrored and its time to live counted from the end', async () => {
    await using passes = await bound({ ttlSecondsAfterFinished: 120 })
    await setSandboxStatus(passes.client, 'c', finishedStatus(passes, 30_000))
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: 90_000 })
    expect(condition(await readClaim(passes), 'Finished')?.reason).toBe('PodSucceeded')
  })

  it.each<{ policy: Lifecycle['shutdownPolicy']; claimLeft: boolean; sandboxLeft: boolean }>([
    { policy: 'Retain', claimLeft: true, sandboxLeft: false },
    { policy: 'Delete', claimLeft: false, sandboxLeft: false },
  ])('scenarios 133, 134: policy $policy acts one pass after it was recorded', async ({ policy, claimLeft }) => {
    await using passes = await bound({ ttlSecondsAfterFinished: 0, ...(policy && { shutdownPolicy: policy }) })
    await setSandboxStatus(passes.client, 'c', finishedStatus(passes, 0))
    passes.writes.length = 0
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: 1 })
    expect(passes.writes.filter(({ what }) => what.endsWith('/status'))).toHaveLength(1)
    const marked = await readClaim(passes)
    expect(condition(marked, 'Ready')).toMatchObject({
      reason: 'ClaimExpired',
      message: 'Claim expired. Sandbox cleanup initiated.',
    })
    expect(condition(marked, 'Finished')).toBeDefined()
    expect(await passes.client.find(Sandboxes, ref('c'))).toBeDefined()
    expect(passes.events.at(-1)).toEqual({
      type: 'Normal',
      reason: 'ClaimExpired',
      action: 'Claim Expired',
      note: 'Claim expired',
    })
    await passes.claim('c')
    const after = await passes.client.find(SandboxClaims, ref('c'))
    expect(after !== undefined).toBe(claimLeft)
    if (!after) return
    expect(await passes.client.find(Sandboxes, ref('c'))).toBeUndefined()
    expect(condition(after, 'Finished')).toBeDefined()
    expect(condition(after, 'Ready')?.reason).toBe('ClaimExpired')
    await passes.claim('c')
    expect((await readClaim(passes)).status?.sandbox?.name).toBeUndefined()
  })

  it('scenario 137: DeleteForeground keeps the claim until its Sandbox is gone', async () => {
    await using passes = await bound({ shutdownPolicy: 'DeleteForeground' })
    await passes.client.patch(Sandboxes, ref('c'), { type: 'merge', body: { metadata: { finalizers: ['test/hold'] } } })
    await setLifecycle(passes, { shutdownTime: at(passes, -1_000) })
    await passes.claim('c')
    await passes.claim('c')
    const going = await readClaim(passes)
    expect(going.metadata.deletionTimestamp).toBeDefined()
    expect(passes.events.at(-1)).toMatchObject({
      action: 'Deleting',
      note: 'Deleting Claim (ShutdownPolicy=DeleteForeground)',
    })
    expect(passes.writes.filter(({ what }) => what === 'DELETE sandboxes/c')).toEqual([])
    await passes.client.patch(Sandboxes, ref('c'), { type: 'merge', body: { metadata: { finalizers: null } } })
    await expect.poll(() => passes.client.find(SandboxClaims, ref('c'))).toBeUndefined()
  })

  it.each([
    { shutdownInMs: 5_000, expected: 5_000 },
    { shutdownInMs: 300_000, expected: 90_000 },
  ])('scenario 135: the earlier of two ends counts ($expected ms)', async ({ shutdownInMs, expected }) => {
    await using passes = await bound({ ttlSecondsAfterFinished: 120 })
    await setLifecycle(passes, { shutdownTime: at(passes, shutdownInMs), ttlSecondsAfterFinished: 120 })
    await setSandboxStatus(passes.client, 'c', finishedStatus(passes, 30_000))
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: expected })
  })

  it("scenario 136: somebody else's Sandbox of that name is not deleted", async () => {
    await using passes = await bound()
    await passes.client.delete(Sandboxes, ref('c'))
    await passes.client.create(Sandboxes, sandbox('c'))
    await setLifecycle(passes, { shutdownTime: at(passes, -1_000) })
    await passes.claim('c')
    expect(await passes.claim('c')).toEqual({})
    const after = await readClaim(passes)
    expect(condition(after, 'Ready')).toMatchObject({
      reason: 'ClaimExpired',
      message:
        'Claim expired. sandbox not owned by this claim: sandbox "c" is not owned by claim "c"; deletion skipped.',
    })
    expect(after.status?.sandbox?.name).toBeUndefined()
    expect(await passes.client.find(Sandboxes, ref('c'))).toBeDefined()
  })

  it('scenario 138: without a time limit a finished claim stays', async () => {
    await using passes = await bound()
    await setSandboxStatus(passes.client, 'c', finishedStatus(passes, 1_000_000))
    expect(await passes.claim('c')).toEqual({})
    expect(condition(await readClaim(passes), 'Finished')).toBeDefined()
  })

  it('is not for ever: with more time the claim gets a sandbox again', async () => {
    await using passes = await bound()
    await setLifecycle(passes, { shutdownTime: at(passes, -1_000) })
    await passes.claim('c')
    await passes.claim('c')
    expect(await passes.client.find(Sandboxes, ref('c'))).toBeUndefined()
    await setLifecycle(passes, null)
    await passes.claim('c')
    expect(await passes.client.find(Sandboxes, ref('c'))).toBeDefined()
  })
})

describe('first Ready', () => {
  const firstReady = 'agents.x-k8s.io/claim-first-ready-at'
  const count = async (passes: Passes, name: string): Promise<number> => {
    const text = await passes.metrics.getSingleMetricAsString(name)
    return Number(/_count\{[^}]*\} (\d+)/.exec(text)?.[1] ?? 0)
  }

  it('scenarios 140, 142: every known latency is counted once, stamped, and never again', async () => {
    await using passes = await bound()
    const past = new Date(passes.nowMs - 1_000).toISOString()
    const future = new Date(passes.nowMs + 100_000).toISOString()
    const stamps = {
      'agents.x-k8s.io/client-first-requested-at': past,
      'agents.x-k8s.io/webhook-first-observed-at': future,
    }
    await passes.client.patch(SandboxClaims, ref('c'), { type: 'merge', body: { metadata: { annotations: stamps } } })
    await setSandboxStatus(passes.client, 'c', {
      ...readyStatus(),
      conditions: [{ ...(readyStatus().conditions ?? [])[0], lastTransitionTime: at(passes, 10_000) } as never],
    })
    await passes.claim('c')
    const flap = {
      conditions: [
        { type: 'Ready', status: 'False', reason: 'X', message: '', lastTransitionTime: at(passes, 0) } as const,
      ],
    }
    await setSandboxStatus(passes.client, 'c', flap)
    await passes.claim('c')
    await setSandboxStatus(passes.client, 'c', readyStatus())
    await passes.claim('c')
    expect((await readClaim(passes)).metadata.annotations?.[firstReady]).toMatch(/^20\d\d-.*Z$/)
    expect(await count(passes, 'agent_sandbox_claim_controller_startup_latency_ms')).toBe(1)
    expect(await count(passes, 'agent_sandbox_client_claim_startup_latency_ms')).toBe(1)
    expect(await count(passes, 'agent_sandbox_creation_latency_ms')).toBe(1)
    expect(await count(passes, 'agent_sandbox_claim_startup_latency_ms')).toBe(0)
  })

  it('scenario 141: a stamp that fails is an error, and the retry does not count again', async () => {
    await using passes = await bound(undefined, undefined, readyStatus())
    passes.fault = refuse(patchOf('/sandboxclaims/c'), refusal(500, 'InternalError', 'boom'))
    await expect(passes.claim('c')).rejects.toThrow('stamp claim first-ready annotation: boom')
    passes.fault = undefined
    await passes.claim('c')
    expect((await readClaim(passes)).metadata.annotations?.[firstReady]).toBe('unknown')
    expect(await count(passes, 'agent_sandbox_claim_controller_startup_latency_ms')).toBe(1)
  })

  it('scenario 143: with annotations and events off, only what is needed is written', async () => {
    await using passes = await bound(
      undefined,
      (options) => {
        options.claim.disableEvents = true
        options.claim.disableObservabilityAnnotations = true
      },
      readyStatus(),
    )
    await passes.claim('c')
    expect(passes.events).toEqual([])
    expect(passes.writes.filter(({ what }) => what === 'PATCH sandboxclaims/c')).toHaveLength(1)
    expect(await count(passes, 'agent_sandbox_claim_controller_startup_latency_ms')).toBe(1)
  })
})

describe('what wakes a claim', () => {
  const drain = async (passes: Passes): Promise<string[]> => {
    const keys: string[] = []
    while (passes.queues.claim.length > 0) {
      const key = (await passes.queues.claim.next()) ?? ''
      passes.queues.claim.done(key)
      keys.push(key.replace('default/', ''))
    }
    return keys.sort()
  }

  it('scenario 144: a pool wakes its waiting claims for spec changes, a template its claims when it appears', async () => {
    await using passes = await bound()
    await passes.client.create(SandboxClaims, claim('waiting'))
    await passes.refresh()
    await drain(passes)
    await passes.client.patch(
      SandboxWarmPools,
      ref('pool'),
      { type: 'merge', body: { status: { replicas: 1 } } },
      { subresource: 'status' },
    )
    await passes.refresh()
    expect(await drain(passes)).toEqual([])
    await passes.client.scale(SandboxWarmPools, ref('pool'), 5)
    await passes.refresh()
    expect(await drain(passes)).toEqual(['waiting'])
    await passes.client.patch(SandboxTemplates, ref('tmpl'), {
      type: 'merge',
      body: { metadata: { labels: { a: '1' } } },
    })
    await passes.refresh()
    expect(await drain(passes)).toEqual([])
    await passes.client.delete(SandboxTemplates, ref('tmpl'))
    await passes.refresh()
    expect(await drain(passes)).toEqual([])
    await passes.client.create(SandboxTemplates, template())
    await passes.refresh()
    expect(await drain(passes)).toEqual(['c', 'waiting'])
  })

  const stored = (status: SandboxStatus, change: object = {}): Stored<Sandbox> =>
    ({
      ...sandbox('a'),
      metadata: { name: 'a', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...change },
      status,
    }) as Stored<Sandbox>
  const ready = (reason: string) =>
    ({ type: 'Ready', status: 'False', reason, message: '', lastTransitionTime: '' }) as const

  it.each<{ when: string; old: Stored<Sandbox>; object: Stored<Sandbox>; wakes: boolean }>([
    { when: 'labels change', old: stored({}), object: stored({}, { labels: { a: '1' } }), wakes: false },
    {
      when: 'Suspended changes',
      old: stored({}),
      object: stored({ conditions: [{ ...ready('x'), type: 'Suspended' }] }),
      wakes: false,
    },
    {
      when: 'only the reason of Ready changes',
      old: stored({ conditions: [ready('a')] }),
      object: stored({ conditions: [ready('SandboxExpired')] }),
      wakes: true,
    },
    { when: 'addresses change', old: stored({}), object: stored({ podIPs: ['1.1.1.1'] }), wakes: true },
    { when: 'the FQDN changes', old: stored({}), object: stored({ serviceFQDN: 'a' }), wakes: true },
    { when: 'it begins to go', old: stored({}), object: stored({}, { deletionTimestamp: 'now' }), wakes: true },
  ])('scenario 145: when $when', ({ old, object, wakes }) => {
    expect(concernsClaim({ type: 'update', old, object })).toBe(wakes)
  })

  it('scenario 146: a claim made anew is seen anew, and a late delete does not erase that', async () => {
    await using passes = await startPasses()
    const first = await passes.client.create(SandboxClaims, claim('c'))
    const firstSeen = passes.observed.of(first)
    await passes.client.delete(SandboxClaims, ref('c'))
    const second = await passes.client.create(SandboxClaims, claim('c'))
    passes.nowMs += 5_000
    const secondSeen = passes.observed.of(second)
    expect(secondSeen.getTime() - firstSeen.getTime()).toBe(5_000)
    passes.observed.drop(first)
    passes.nowMs += 5_000
    expect(passes.observed.of(second)).toEqual(secondSeen)
  })
})
