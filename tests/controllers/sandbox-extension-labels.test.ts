import { nameHash, Pods, Sandboxes } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { sandbox } from './cluster.js'
import { ref } from './objects.js'
import { type Passes, startPasses } from './passes.js'

const warmPool = 'agents.x-k8s.io/warm-pool-sandbox'
const templateHash = 'agents.x-k8s.io/sandbox-template-ref-hash'
const claimUid = 'agents.x-k8s.io/claim-uid'
const evict = 'cluster-autoscaler.kubernetes.io/safe-to-evict'
const owner = (kind: string) => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind,
  name: 'o',
  uid: 'o',
  controller: true,
})

async function started(ownerKind: string | undefined, labels: Record<string, string>): Promise<Passes> {
  const passes = await startPasses()
  const base = sandbox('box')
  const metadata = { ...base.metadata, labels, ...(ownerKind && { ownerReferences: [owner(ownerKind)] }) }
  const podTemplate = {
    ...base.spec.podTemplate,
    metadata: { labels: { [warmPool]: 'forged' }, annotations: { [evict]: 'true' } },
  }
  await passes.client.create(Sandboxes, { ...base, metadata, spec: { podTemplate } })
  return passes
}

const podLabels = async (passes: Passes): Promise<Record<string, string>> => {
  await passes.sandbox('box')
  const { 'agents.x-k8s.io/sandbox-name-hash': _, ...rest } =
    (await passes.client.get(Pods, ref('box'))).metadata.labels ?? {}
  return rest
}

describe('labels that the Pod inherits from its Sandbox', () => {
  const own = { [warmPool]: nameHash('pool'), [templateHash]: nameHash('tmpl'), [claimUid]: 'c' }

  it.each<{ when: string; owner: string | undefined; expected: Record<string, string> }>([
    {
      when: 'scenario 45: a pool owns it',
      owner: 'SandboxWarmPool',
      expected: { [warmPool]: own[warmPool] ?? '', [templateHash]: own[templateHash] ?? '' },
    },
    {
      when: 'scenario 46 and 1.0: a claim owns it',
      owner: 'SandboxClaim',
      expected: { [templateHash]: own[templateHash] ?? '', [claimUid]: 'c' },
    },
    { when: 'scenario 45: nobody owns it', owner: undefined, expected: {} },
  ])('$when', async ({ owner: kind, expected }) => {
    await using passes = await started(kind, own)
    expect(await podLabels(passes)).toEqual(expected)
  })

  it('scenarios 47, 55: adoption strips the pool marks in exactly one Pod patch', async () => {
    await using passes = await started('SandboxWarmPool', own)
    await passes.sandbox('box')
    const body = {
      metadata: { ownerReferences: [owner('SandboxClaim')], labels: { [warmPool]: null } },
      spec: { podTemplate: { metadata: { annotations: { [evict]: null } } } },
    }
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body })
    passes.writes.length = 0
    expect(await podLabels(passes)).toEqual({ [templateHash]: own[templateHash], [claimUid]: 'c' })
    expect((await passes.client.get(Pods, ref('box'))).metadata.annotations?.[evict]).toBeUndefined()
    await passes.sandbox('box')
    expect(passes.writes.filter(({ what }) => what === 'PATCH pods/box')).toHaveLength(1)
  })

  it('scenario 46: the template hash leaves the Pod with its owner', async () => {
    await using passes = await started('SandboxClaim', own)
    await passes.sandbox('box')
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: { metadata: { ownerReferences: [] } } })
    expect(await podLabels(passes)).toEqual({})
  })
})
