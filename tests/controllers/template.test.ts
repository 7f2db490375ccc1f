import {
  NetworkPolicies,
  type NetworkPolicy,
  nameHash,
  type SandboxTemplate,
  SandboxTemplates,
} from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { namespace, template } from './cluster.js'
import { foreignOwner, ref } from './objects.js'
import { type Passes, startPasses } from './passes.js'

async function started(spec: Partial<SandboxTemplate['spec']> = {}): Promise<Passes> {
  const passes = await startPasses()
  await passes.client.create(SandboxTemplates, template('tmpl', spec))
  return passes
}

const name = 'tmpl-network-policy'
const foreign: NetworkPolicy = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace, ownerReferences: [foreignOwner] },
  spec: { podSelector: {} },
}
const selector = { matchLabels: { 'agents.x-k8s.io/sandbox-template-ref-hash': nameHash('tmpl') } }

describe('SandboxTemplate', () => {
  it('S0-D5 S4-P3.6, scenario 147: label and default policy, then silence', async () => {
    await using passes = await started()
    await passes.template('tmpl')
    const made = await passes.client.get(NetworkPolicies, ref(name))
    expect(made.spec).toEqual({
      podSelector: selector,
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'agent-sandbox-system' } },
              podSelector: { matchLabels: { app: 'sandbox-router' } },
            },
          ],
        },
      ],
      egress: [
        {
          to: [
            {
              ipBlock: {
                cidr: '0.0.0.0/0',
                except: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'],
              },
            },
            { ipBlock: { cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] } },
          ],
        },
      ],
    })
    expect((await passes.client.get(SandboxTemplates, ref('tmpl'))).metadata.labels).toEqual(selector.matchLabels)
    passes.writes.length = 0
    await passes.template('tmpl')
    expect(passes.writes).toEqual([])
  })

  it('S2-C3, scenario 148: own rules are copied, and drift is put right', async () => {
    const egress = [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }]
    await using passes = await started({ networkPolicy: { egress } })
    await passes.template('tmpl')
    expect((await passes.client.get(NetworkPolicies, ref(name))).spec).toEqual({
      podSelector: selector,
      policyTypes: ['Ingress', 'Egress'],
      egress,
    })
    await passes.client.patch(NetworkPolicies, ref(name), {
      type: 'merge',
      body: { spec: { egress: [], podSelector: { matchLabels: { a: 'b' } } } },
    })
    await passes.template('tmpl')
    const fixed = (await passes.client.get(NetworkPolicies, ref(name))).spec
    expect(fixed?.egress).toEqual(egress)
    expect(fixed?.podSelector).toEqual(selector)
  })

  it('S0-N2, scenario 149: Unmanaged makes none, deletes ours, and leaves others alone', async () => {
    await using passes = await started()
    await passes.template('tmpl')
    await passes.client.patch(SandboxTemplates, ref('tmpl'), {
      type: 'merge',
      body: { spec: { networkPolicyManagement: 'Unmanaged' } },
    })
    await passes.template('tmpl')
    expect(await passes.client.find(NetworkPolicies, ref(name))).toBeUndefined()
    await passes.client.create(NetworkPolicies, foreign)
    await passes.template('tmpl')
    expect(await passes.client.find(NetworkPolicies, ref(name))).toBeDefined()
  })

  it("scenario 150: Managed refuses somebody else's policy of that name", async () => {
    await using passes = await started()
    await passes.client.create(NetworkPolicies, foreign)
    await expect(passes.template('tmpl')).rejects.toThrow(
      'refusing to update NetworkPolicy "tmpl-network-policy" as it is not controlled by SandboxTemplate "tmpl"',
    )
    expect((await passes.client.get(NetworkPolicies, ref(name))).spec).toMatchObject(foreign.spec ?? {})
  })
})
