import { matchesLabelSelector, type NetworkPolicy, type Pod } from '@corral/resources'
import type { EgressRule } from '../isolation/isolation.js'

/** Whether the policy is about this pod. */
export function selectsPod(policy: NetworkPolicy, pod: Pod): boolean {
  if (policy.metadata?.namespace !== pod.metadata?.namespace) return false
  return matchesLabelSelector(policy.spec?.podSelector ?? {}, pod.metadata?.labels ?? {})
}

/**
 * What the policy says that this node does not do, in one sentence for the pod's users; undefined where the pod's
 * closed network already is what the policy asks for.
 */
export function policyGap(policy: NetworkPolicy, egress: readonly EgressRule[]): string | undefined {
  const gaps = [egressGap(policy, egress), ingressGap(policy)].filter((gap) => gap !== undefined)
  if (gaps.length === 0) return undefined
  return `NetworkPolicy "${policy.metadata?.name}" ${gaps.join('; it ')}`
}

const offered = 'a pod on this node reaches the names of its corral.dev/egress annotation and the broker, nothing else'

function egressGap(policy: NetworkPolicy, egress: readonly EgressRule[]): string | undefined {
  const rules = policy.spec?.egress ?? []
  if (!concernsEgress(policy)) return undefined
  if (rules.length > 0) return `allows egress by address (${describeRules(rules)}), which is not opened: ${offered}`
  if (egress.length === 0) return undefined
  const names = egress.map(({ host, port }) => `${host}:${port}`).join(', ')
  return `denies all egress, yet the pod's annotation opens ${names}`
}

function ingressGap(policy: NetworkPolicy): string | undefined {
  const rules = policy.spec?.ingress ?? []
  if (rules.length === 0) return undefined
  return 'allows ingress, which is not opened: a pod on this node is reached through port-forward and exec only'
}

function concernsEgress({ spec }: NetworkPolicy): boolean {
  return spec?.policyTypes?.includes('Egress') ?? (spec?.egress ?? []).length > 0
}

type EgressRuleOfPolicy = NonNullable<NonNullable<NetworkPolicy['spec']>['egress']>[number]

function describeRules(rules: readonly EgressRuleOfPolicy[]): string {
  const peers = rules.flatMap((rule) => {
    if (!rule.to?.length) return ['anywhere']
    return rule.to.map((peer) => peer.ipBlock?.cidr ?? (peer.namespaceSelector ? 'pods of other namespaces' : 'pods'))
  })
  return [...new Set(peers)].slice(0, 5).join(', ')
}
