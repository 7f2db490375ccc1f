import {
  NetworkPolicies,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  SandboxTemplates,
  SandboxWarmPools,
} from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { claim, condition, namespace, pool, sandbox, template } from './cluster.js'
import { readClaim, readSandbox, ready, started } from './cold-claims.js'
import { foreignOwner, readyStatus, ref, setSandboxStatus } from './objects.js'
import { refusal, refuse, startPasses } from './passes.js'

describe('cold start', () => {
  it('S0-D4, scenario 78: a Sandbox of the claim, with secure defaults', async () => {
    await using passes = await started()
    expect(await passes.claim('c')).toEqual({})
    const made = await readSandbox(passes)
    const owner = await readClaim(passes)
    expect(made.metadata.ownerReferences).toEqual([
      {
        apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
        kind: 'SandboxClaim',
        name: 'c',
        uid: owner.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ])
    expect(made.metadata.labels).toMatchObject({
      'agents.x-k8s.io/launch-type': 'cold',
      'agents.x-k8s.io/claim-uid': owner.metadata.uid,
    })
    expect(made.metadata.annotations).toEqual({ 'agents.x-k8s.io/sandbox-template-ref': 'tmpl' })
    expect(made.spec.podTemplate.spec).toMatchObject({
      automountServiceAccountToken: false,
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['8.8.8.8', '1.1.1.1'] },
    })
    expect(condition(owner, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'SandboxNotReady',
      message: 'Sandbox is not ready',
    })
    expect(owner.status?.sandbox).toEqual({ name: 'c' })
  })

  it.each<{ when: string; spec: Partial<SandboxTemplate['spec']>; expected: object }>([
    {
      when: 'the template mounts its token',
      spec: { podTemplate: { spec: { containers: [{ name: 'm', image: 'x' }], automountServiceAccountToken: true } } },
      expected: { automountServiceAccountToken: true },
    },
    {
      when: 'the template has a policy of its own',
      spec: { networkPolicy: {} },
      expected: { automountServiceAccountToken: false },
    },
    {
      when: 'the policy is unmanaged',
      spec: { networkPolicyManagement: 'Unmanaged' },
      expected: { automountServiceAccountToken: false },
    },
  ])('scenario 79: $when', async ({ when, spec, expected }) => {
    await using passes = await started({}, spec)
    await passes.claim('c')
    const made = (await readSandbox(passes)).spec.podTemplate.spec
    expect(made).toMatchObject(expected)
    if (!when.includes('token')) expect(made.dnsPolicy).toBeUndefined()
  })

  it('scenario 80: a missing pool, a missing template, and both there at last', async () => {
    await using passes = await startPasses()
    await passes.client.create(SandboxClaims, claim('c'))
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: 60_000 })
    expect(await ready(passes)).toMatchObject({
      reason: 'WarmPoolNotFound',
      message: 'SandboxWarmPool "pool" not found',
    })
    await passes.client.create(SandboxWarmPools, pool('pool', 0))
    expect(await passes.claim('c')).toEqual({ requeueAfterMs: 60_000 })
    expect(await ready(passes)).toMatchObject({
      reason: 'TemplateNotFound',
      message: 'SandboxTemplate "tmpl" not found',
    })
    await passes.client.create(SandboxTemplates, template())
    expect(await passes.claim('c')).toEqual({})
    expect(await readSandbox(passes)).toBeDefined()
  })

  it('scenario 81: a bound claim stays Ready without its template', async () => {
    await using passes = await started()
    await passes.claim('c')
    await setSandboxStatus(passes.client, 'c', {
      ...readyStatus('10.1.1.1'),
      serviceFQDN: 'c.default.svc.cluster.local',
    })
    await passes.client.delete(SandboxTemplates, ref('tmpl'))
    await passes.claim('c')
    expect(await ready(passes)).toMatchObject({ status: 'True' })
    expect((await readClaim(passes)).status?.sandbox).toEqual({
      name: 'c',
      podIPs: ['10.1.1.1'],
      serviceFQDN: 'c.default.svc.cluster.local',
    })
  })

  it("scenario 82: somebody else's Sandbox has the name", async () => {
    await using passes = await started()
    await passes.client.create(Sandboxes, sandbox('c'))
    const text =
      'sandbox "c" is not controlled by claim "c". Please use a different claim name or delete the sandbox manually'
    await expect(passes.claim('c')).rejects.toThrow(text)
    expect(await ready(passes)).toMatchObject({ reason: 'ReconcilerError', message: `Error seen: ${text}` })
    expect((await readSandbox(passes)).metadata.ownerReferences).toBeUndefined()
  })

  it('scenario 83: a bound Sandbox gets its template hash back', async () => {
    await using passes = await started()
    await passes.claim('c')
    const label = 'agents.x-k8s.io/sandbox-template-ref-hash'
    await passes.client.patch(Sandboxes, ref('c'), { type: 'merge', body: { metadata: { labels: { [label]: null } } } })
    await passes.claim('c')
    expect((await readSandbox(passes)).metadata.labels?.[label]).toMatch(/^[0-9a-f]{8}$/)
  })

  it('scenario 84: the policy that an old release made for the claim goes, others stay', async () => {
    await using passes = await started()
    const { uid } = (await readClaim(passes)).metadata
    const policy = (ownerReferences: object[]) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'c-network-policy', namespace, ownerReferences } as never,
      spec: { podSelector: {} },
    })
    await passes.client.create(NetworkPolicies, policy([foreignOwner]))
    await passes.claim('c')
    expect(await passes.client.find(NetworkPolicies, ref('c-network-policy'))).toBeDefined()
    await passes.client.delete(NetworkPolicies, ref('c-network-policy'))
    await passes.client.delete(SandboxTemplates, ref('tmpl'))
    const own = {
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxClaim',
      name: 'c',
      uid,
      controller: true,
    }
    await passes.client.create(NetworkPolicies, policy([own]))
    await passes.claim('c')
    expect(await passes.client.find(NetworkPolicies, ref('c-network-policy'))).toBeUndefined()
  })

  it('scenario 85: the trace of the claim goes on in the Sandbox', async () => {
    await using passes = await started()
    const trace = { 'opentelemetry.io/trace-context': '{"traceparent":"00-1-2-01"}' }
    await passes.client.patch(SandboxClaims, ref('c'), { type: 'merge', body: { metadata: { annotations: trace } } })
    await passes.claim('c')
    expect((await readSandbox(passes)).metadata.annotations).toMatchObject(trace)
  })

  it('scenario 97, as 1.0 has it: a Sandbox that the view does not show is asked for and bound at once', async () => {
    await using passes = await started()
    await passes.refresh()
    await passes.claim('c', 'stale')
    passes.writes.length = 0
    expect(await passes.claim('c', 'stale')).toEqual({})
    expect(passes.writes.map(({ what }) => what)).not.toContain('POST sandboxes')
    expect((await readClaim(passes)).status?.sandbox?.name).toBe('c')
  })

  it('scenario 97: while the server cannot be asked either, the claim looks again soon and keeps its status', async () => {
    await using passes = await started()
    await passes.claim('c')
    await passes.refresh()
    const before = (await readClaim(passes)).status
    passes.restart()
    await passes.refresh()
    await passes.client.delete(Sandboxes, ref('c'))
    await passes.refresh()
    await passes.client.create(Sandboxes, sandbox('c'))
    passes.fault = refuse(
      ({ method, path }) => method === 'GET' && path.endsWith('/sandboxes/c'),
      refusal(500, 'InternalError'),
    )
    expect(await passes.claim('c', 'stale')).toEqual({ requeueAfterMs: 200 })
    expect((await readClaim(passes)).status).toEqual(before)
  })

  it('scenario 98: an event and a counter tell of it', async () => {
    await using passes = await started()
    await passes.claim('c')
    expect(passes.events).toEqual([
      { type: 'Normal', reason: 'SandboxProvisioned', action: 'Provisioning', note: 'Created Sandbox "c"' },
    ])
    const metric = await passes.metrics.getSingleMetricAsString('agent_sandbox_claim_creation_total')
    expect(metric).toMatch(/launch_type="cold"/)
    expect(metric).toMatch(
      /warmpool_name="pool",pod_condition="not_ready",created_by="unknown"|pod_condition="not_ready"/,
    )
  })
})
