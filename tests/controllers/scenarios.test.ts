import { parseManagerOptions } from '@corral/controllers'
import { crdManifests, type Sandbox, SandboxClaims, Sandboxes, SandboxWarmPools } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { claim, createPool, fullPool, readyClaim, sandbox, startTestCluster } from './cluster.js'
import { ref } from './objects.js'
import { startPasses } from './passes.js'

/** Scenarios of the behaviour reference that belong to no reconciler, and those that 1.0 turned into their opposite. */
describe('the rest of the behaviour reference', () => {
  const data = {
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  const cache = { ...data, metadata: { name: 'cache' } }

  it.each<{ scenario: string; before: Partial<Sandbox['spec']>; change: object }>([
    {
      scenario: 'scenario 1: a volume is appended',
      before: { volumeClaimTemplates: [data] },
      change: { volumeClaimTemplates: [data, cache] },
    },
    { scenario: 'scenario 2: a list is added', before: {}, change: { volumeClaimTemplates: [data] } },
    {
      scenario: 'scenario 3: the list is removed',
      before: { volumeClaimTemplates: [data] },
      change: { volumeClaimTemplates: null },
    },
  ])('$scenario, and the server refuses', async ({ before, change }) => {
    await using passes = await startPasses()
    await passes.client.create(Sandboxes, sandbox('box', before))
    const body = { spec: change }
    await expect(passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body })).rejects.toThrow(
      'volumeClaimTemplates is immutable',
    )
  })

  it('scenario 14: scaling a pool changes its replicas only, and its selector is one', async () => {
    await using cluster = await startTestCluster()
    await cluster.startManager()
    await createPool(cluster.client, 1)
    const before = await fullPool(cluster.client, 1)
    await cluster.client.scale(SandboxWarmPools, ref('pool'), 2)
    const after = await fullPool(cluster.client, 2)
    expect(after.spec).toEqual({ ...before.spec, replicas: 2 })
    expect(after.status?.selector).toMatch(/^agents\.x-k8s\.io\/warm-pool-sandbox=[0-9a-f]{8}$/)
  })

  it.each([
    { isScoped: false, scoped: [] },
    { isScoped: true, scoped: ['pods', 'services'] },
  ])('scenario 172: label scoping $isScoped narrows the watches of $scoped', async ({ isScoped, scoped }) => {
    await using cluster = await startTestCluster()
    const selectors = new Map<string, string>()
    cluster.fault = ({ method, path, query }) => {
      const resource = path.split('/').at(-1) ?? ''
      if (method === 'GET' && query.get('watch')) selectors.set(resource, query.get('labelSelector') ?? '')
      return undefined
    }
    await cluster.startManager((options) => {
      options.cacheLabelSelectors = isScoped
    })
    expect(selectors.size).toBe(8)
    const narrowed = [...selectors].filter(([, selector]) => selector !== '')
    expect(narrowed.map(([resource]) => resource).sort()).toEqual(scoped)
    for (const [, selector] of narrowed) expect(selector).toBe('agents.x-k8s.io/sandbox-name-hash')
  })

  it('scenario 174, as 1.0 has it: CRDs for a cluster ask for no conversion, so there is none to patch', () => {
    const crds = crdManifests('cluster').filter(({ spec }) => spec.group.endsWith('agents.x-k8s.io'))
    expect(crds.map(({ spec }) => spec.conversion)).toEqual(crds.map(() => undefined))
    expect(crds.map(({ spec }) => spec.versions.map(({ name }) => name))).toEqual(crds.map(() => ['v1beta1']))
  })

  it.each(['webhook-cert-dir=/certs', 'webhook-cert-name=tls.crt', 'webhook-key-name=tls.key', 'manage-webhook-certs'])(
    'scenario 175, as 1.0 has it: there are no webhook certificates, and --%s is refused',
    (flag) => {
      const name = flag.split('=')[0]
      expect(parseManagerOptions([`--${flag}`])).toEqual({ error: `flag provided but not defined: -${name}` })
    },
  )

  it('scenario 176: a stamp is a patch of the annotation alone, and where there is nothing to stamp none is sent', async () => {
    await using passes = await startPasses()
    await createPool(passes.client, 0)
    await passes.client.create(SandboxClaims, claim())
    await passes.claim('claim')
    const stamp = passes.writes.find(({ what }) => what === 'PATCH sandboxclaims/claim')
    const { metadata, ...rest } = (stamp?.body ?? {}) as { metadata?: { annotations?: object } }
    expect(rest).toEqual({})
    expect(Object.keys(metadata?.annotations ?? {})).toEqual(['agents.x-k8s.io/controller-first-observed-at'])
    passes.writes.length = 0
    await passes.claim('claim')
    await passes.claim('claim')
    expect(passes.writes.filter(({ what }) => what === 'PATCH sandboxclaims/claim')).toEqual([])
  })

  it('scenario 180, as 1.0 has it: an adopted Sandbox is Ready without ever getting a pod-name annotation', async () => {
    await using cluster = await startTestCluster()
    await cluster.startManager()
    await createPool(cluster.client, 1)
    await fullPool(cluster.client, 1)
    const seen: boolean[] = []
    const lifetime = new AbortController()
    const watching = (async () => {
      for await (const { object } of cluster.client.watch(Sandboxes, { signal: lifetime.signal }))
        seen.push(Object.hasOwn(object.metadata.annotations ?? {}, 'agents.x-k8s.io/pod-name'))
    })()
    await cluster.client.create(SandboxClaims, claim())
    await readyClaim(cluster.client, 'claim')
    await fullPool(cluster.client, 1)
    lifetime.abort()
    await watching
    expect(seen.length).toBeGreaterThan(1)
    expect(seen).not.toContain(true)
  })
})
