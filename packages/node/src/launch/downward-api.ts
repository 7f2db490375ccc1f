import type { Container, Pod } from '@corral/resources'
import { quantityValue } from './amounts.js'
import { LaunchError } from './launch-error.js'

/** What the pod can be told about itself beyond its own object. */
export interface PodFacts {
  podIP: string
  hostIP: string
  nodeName: string
  /** The node's own amounts: the limit of a container that has none. */
  allocatable: { cpuMillis: number; memoryBytes: number; ephemeralStorageBytes: number }
}

/** The value of a `fieldRef`; throws a `CreateContainerConfigError` for a path that is not offered. */
export function fieldValue(pod: Pod, path: string, facts: PodFacts): string {
  const subscript = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path)
  if (subscript) {
    const map = subscript[1] === 'labels' ? pod.metadata?.labels : pod.metadata?.annotations
    return map?.[subscript[2]!] ?? ''
  }
  switch (path) {
    case 'metadata.name':
      return pod.metadata?.name ?? ''
    case 'metadata.namespace':
      return pod.metadata?.namespace ?? ''
    case 'metadata.uid':
      return pod.metadata?.uid ?? ''
    case 'metadata.labels':
      return formatMap(pod.metadata?.labels)
    case 'metadata.annotations':
      return formatMap(pod.metadata?.annotations)
    case 'spec.nodeName':
      return facts.nodeName
    case 'spec.serviceAccountName':
      return pod.spec?.serviceAccountName ?? 'default'
    case 'status.podIP':
    case 'status.podIPs':
      return facts.podIP
    case 'status.hostIP':
    case 'status.hostIPs':
      return facts.hostIP
    default:
      throw new LaunchError('CreateContainerConfigError', `unsupported fieldPath: ${path}`)
  }
}

/** The value of a `resourceFieldRef`, divided and rounded up; a missing limit reads as what the node has. */
export function resourceValue(
  container: Container,
  reference: { resource: string; divisor?: string | number },
  facts: PodFacts,
): string {
  const [list, name] = splitOnce(reference.resource)
  const own = list === 'limits' ? container.resources?.limits : container.resources?.requests
  const amount = own?.[name] === undefined ? fallback(list, name, facts) : quantityValue(own[name])
  const divisor = quantityValue(reference.divisor ?? 0) || 1
  return String(Math.ceil(roundOff(amount / divisor)))
}

function fallback(list: string, name: string, facts: PodFacts): number {
  if (list === 'requests') return 0
  if (name === 'cpu') return facts.allocatable.cpuMillis / 1000
  if (name === 'memory') return facts.allocatable.memoryBytes
  if (name === 'ephemeral-storage') return facts.allocatable.ephemeralStorageBytes
  throw new LaunchError('CreateContainerConfigError', `unsupported container resource: ${list}.${name}`)
}

function splitOnce(text: string): [string, string] {
  const dot = text.indexOf('.')
  return [text.slice(0, dot), text.slice(dot + 1)]
}

/** 0.25 / 0.001 must be 250, not 250.00000000000003. */
const roundOff = (value: number): number => Number(value.toPrecision(12))

function formatMap(map: Record<string, string> | undefined): string {
  return Object.entries(map ?? {})
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n')
}
