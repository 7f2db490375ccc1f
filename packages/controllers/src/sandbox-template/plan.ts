import {
  isControlledBy,
  type NetworkPolicy,
  type NetworkPolicySpec,
  nameHash,
  ownerReferenceTo,
  type SandboxTemplate,
  SandboxTemplates,
  type Stored,
  semanticEqual,
} from '@corral/resources'
import { labels } from '../shared/names.js'
import { quote } from '../shared/ownership.js'

export interface TemplateWorld {
  template: Stored<SandboxTemplate>
  policy: Stored<NetworkPolicy> | undefined
}

export type TemplateAction =
  | { kind: 'labelTemplate'; value: string }
  | { kind: 'createPolicy' | 'replacePolicy'; policy: NetworkPolicy }
  | { kind: 'deletePolicy'; name: string }
  | { kind: 'refuse'; message: string }

export function policyName(template: Stored<SandboxTemplate>): string {
  return `${template.metadata.name}-network-policy`
}

/** What the template's label and NetworkPolicy need. Sandboxes of the template carry the hash that the policy selects. */
export function planTemplate({ template, policy }: TemplateWorld): TemplateAction[] {
  if (template.metadata.deletionTimestamp) return []
  const hash = nameHash(template.metadata.name)
  const actions: TemplateAction[] = []
  if (template.metadata.labels?.[labels.templateRefHash] !== hash) actions.push({ kind: 'labelTemplate', value: hash })
  const isOurs = policy !== undefined && isControlledBy(policy, template)
  if (template.spec.networkPolicyManagement === 'Unmanaged') {
    if (isOurs) actions.push({ kind: 'deletePolicy', name: policy.metadata.name })
    return actions
  }
  const spec = policySpec(template, hash)
  if (!policy) return [...actions, { kind: 'createPolicy', policy: newPolicy(template, spec) }]
  if (!isOurs) {
    const message = `refusing to update NetworkPolicy ${quote(policy.metadata.name)} as it is not controlled by SandboxTemplate ${quote(template.metadata.name)}`
    return [...actions, { kind: 'refuse', message }]
  }
  if (!semanticEqual(policy.spec, spec)) actions.push({ kind: 'replacePolicy', policy: { ...policy, spec } })
  return actions
}

function newPolicy(template: Stored<SandboxTemplate>, spec: NetworkPolicySpec): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: policyName(template),
      ...(template.metadata.namespace !== undefined && { namespace: template.metadata.namespace }),
      ownerReferences: [ownerReferenceTo(template, SandboxTemplates)],
    },
    spec,
  }
}

function policySpec(template: Stored<SandboxTemplate>, hash: string): NetworkPolicySpec {
  const rules = template.spec.networkPolicy ?? defaultRules
  return {
    podSelector: { matchLabels: { [labels.templateRefHash]: hash } },
    policyTypes: ['Ingress', 'Egress'],
    // A missing list denies the whole direction, like an empty one.
    ...(rules.ingress && { ingress: rules.ingress }),
    ...(rules.egress && { egress: rules.egress }),
  }
}

/** In through the router, out to the public internet: nothing of the cluster, its DNS included, is within reach. */
const defaultRules: Pick<NetworkPolicySpec, 'ingress' | 'egress'> = {
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
}
