import { type NetworkPolicy, nameHash, type SandboxTemplate, type Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { planTemplate, policyName } from './plan.js'

const hash = nameHash('tools')
const hashLabel = 'agents.x-k8s.io/sandbox-template-ref-hash'
const meta = { uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' }

function template(spec: Partial<SandboxTemplate['spec']> = {}, metadata: object = {}): Stored<SandboxTemplate> {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxTemplate',
    metadata: { ...meta, name: 'tools', namespace: 'ns', labels: { [hashLabel]: hash }, ...metadata },
    spec: { podTemplate: { spec: { containers: [] } }, ...spec },
  }
}
const owner = { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxTemplate', name: 'tools', uid: 'u' }
const ours = { ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }] }
const policy = (spec: NetworkPolicy['spec'], metadata: object = ours): Stored<NetworkPolicy> => ({
  ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
  metadata: { ...meta, name: 'tools-network-policy', namespace: 'ns', ...metadata },
  ...(spec ? { spec } : {}),
})
const selected = { podSelector: { matchLabels: { [hashLabel]: hash } }, policyTypes: ['Ingress', 'Egress'] }
const standard = {
  ...selected,
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
        { ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'] } },
        { ipBlock: { cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] } },
      ],
    },
  ],
}

describe('what a template needs', () => {
  it('a label and a policy of its own: in through the router, out to the public internet', () => {
    const fresh = template({}, { labels: undefined })
    expect(planTemplate({ template: fresh, policy: undefined })).toEqual([
      { kind: 'labelTemplate', value: hash },
      {
        kind: 'createPolicy',
        policy: {
          ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
          metadata: { name: 'tools-network-policy', namespace: 'ns', ...ours },
          spec: standard,
        },
      },
    ])
    expect(policyName(fresh)).toBe('tools-network-policy')
    const [created] = planTemplate({ template: template({}, { namespace: undefined }), policy: undefined })
    expect(created && 'policy' in created && created.policy.metadata).not.toHaveProperty('namespace')
  })

  it.each<{ when: string; world: Parameters<typeof planTemplate>[0]; does: object[] }>([
    { when: 'it has both', world: { template: template(), policy: policy(standard) }, does: [] },
    {
      when: 'its label was changed',
      world: { template: template({}, { labels: { [hashLabel]: 'x' } }), policy: policy(standard) },
      does: [{ kind: 'labelTemplate', value: hash }],
    },
    {
      when: 'its policy was changed',
      world: { template: template(), policy: policy(selected) },
      does: [{ kind: 'replacePolicy', policy: policy(standard) }],
    },
    {
      when: 'it has rules of its own, one direction closed',
      world: { template: template({ networkPolicy: { egress: [] } }), policy: policy(standard) },
      does: [{ kind: 'replacePolicy', policy: policy({ ...selected, egress: [] }) }],
    },
    {
      when: 'it lets anybody in, and nothing out',
      world: { template: template({ networkPolicy: { ingress: [{}] } }), policy: policy(standard) },
      does: [{ kind: 'replacePolicy', policy: policy({ ...selected, ingress: [{}] }) }],
    },
    {
      when: 'a policy of that name is not ours',
      world: { template: template(), policy: policy(standard, {}) },
      does: [
        {
          kind: 'refuse',
          message:
            'refusing to update NetworkPolicy "tools-network-policy" as it is not controlled by SandboxTemplate "tools"',
        },
      ],
    },
    {
      when: 'it wants none and has ours',
      world: { template: template({ networkPolicyManagement: 'Unmanaged' }), policy: policy(standard) },
      does: [{ kind: 'deletePolicy', name: 'tools-network-policy' }],
    },
    {
      when: 'it wants none, and there is one that is not ours',
      world: { template: template({ networkPolicyManagement: 'Unmanaged' }), policy: policy(standard, {}) },
      does: [],
    },
    {
      when: 'it is being deleted',
      world: { template: template({}, { deletionTimestamp: meta.creationTimestamp, labels: {} }), policy: undefined },
      does: [],
    },
  ])('when $when', ({ world, does }) => {
    expect(planTemplate(world)).toEqual(does)
  })
})
