import type { PodSpec } from '@corral/resources'

/** The pod's quality-of-service class, from the cpu and memory of all its containers. */
export function qosClass(spec: PodSpec): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const containers = [...(spec.initContainers ?? []), ...spec.containers]
  const amounts = containers.map((container) => ({
    limits: counted(container.resources?.limits),
    requests: counted(container.resources?.requests),
  }))
  if (amounts.every(({ limits, requests }) => limits.size === 0 && requests.size === 0)) return 'BestEffort'
  const isGuaranteed = amounts.every(({ limits, requests }) => {
    if (limits.size !== 2) return false
    return [...limits].every(([name, limit]) => (requests.get(name) ?? limit) === limit)
  })
  return isGuaranteed ? 'Guaranteed' : 'Burstable'
}

function counted(list: Record<string, string | number> | undefined): Map<string, string> {
  const entries = Object.entries(list ?? {}).filter(([name]) => name === 'cpu' || name === 'memory')
  return new Map(entries.map(([name, amount]) => [name, String(amount)]))
}
