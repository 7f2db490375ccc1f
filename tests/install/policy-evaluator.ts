/**
 * Who may reach whom under a set of NetworkPolicies, as the API describes it and independent of any code of ours: a
 * connection passes when the rules of its source let it out and those of its target let it in. A pod that no policy of a
 * direction selects is open in that direction.
 */
export interface Endpoint {
  namespace: string
  labels: Record<string, string>
}

interface Selector {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] }[]
}
interface Peer {
  podSelector?: Selector
  namespaceSelector?: Selector
  ipBlock?: object
}
interface Rule {
  from?: Peer[]
  to?: Peer[]
  ports?: { port?: number; protocol?: string }[]
}
export interface Policy {
  metadata: { namespace: string }
  spec: { podSelector: Selector; policyTypes: string[]; ingress?: Rule[]; egress?: Rule[] }
}

export function mayReach(
  policies: readonly Policy[],
  from: Endpoint,
  to: Endpoint | 'internet',
  port: number,
  protocol: string = 'TCP',
): boolean {
  const out = allows(policies, from, 'Egress', (rule) => passes(rule.to, rule, to, from.namespace, port, protocol))
  if (to === 'internet') return out
  const into = allows(policies, to, 'Ingress', (rule) => passes(rule.from, rule, from, to.namespace, port, protocol))
  return out && into
}

function allows(
  policies: readonly Policy[],
  pod: Endpoint,
  direction: 'Ingress' | 'Egress',
  isMatch: (rule: Rule) => boolean,
): boolean {
  const about = policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === pod.namespace &&
      spec.policyTypes.includes(direction) &&
      selects(spec.podSelector, pod.labels),
  )
  if (about.length === 0) return true
  return about.some(({ spec }) => ((direction === 'Ingress' ? spec.ingress : spec.egress) ?? []).some(isMatch))
}

function passes(
  peers: Peer[] | undefined,
  { ports }: Rule,
  other: Endpoint | 'internet',
  own: string,
  port: number,
  protocol: string,
): boolean {
  const isPort =
    !ports || ports.length === 0 || ports.some((each) => each.port === port && (each.protocol ?? 'TCP') === protocol)
  if (!isPort) return false
  if (!peers || peers.length === 0) return true
  return peers.some((peer) => {
    if (other === 'internet') return peer.ipBlock !== undefined
    if (peer.ipBlock) return false
    const isNamespace = peer.namespaceSelector
      ? selects(peer.namespaceSelector, { 'kubernetes.io/metadata.name': other.namespace })
      : other.namespace === own
    return isNamespace && (!peer.podSelector || selects(peer.podSelector, other.labels))
  })
}

function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Record<string, string>): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key]
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      return (value !== undefined && values.includes(value)) === (operator === 'In')
    })
  )
}
