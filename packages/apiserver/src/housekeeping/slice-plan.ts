import { createHash } from 'node:crypto'
import type { DiscoveryEndpointPort, Endpoint, EndpointSlice, Pod, Service, ServicePort } from '@corral/resources'
import { canonicalJson, jsonEqual } from '../schema/json-value.js'

export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by'
export const MANAGER = 'endpointslice-controller.k8s.io'
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name'
const HEADLESS_LABEL = 'service.kubernetes.io/headless'

/** What has to change so that a service's slices tell the truth. */
export interface SlicePlan {
  readonly create: readonly EndpointSlice[]
  readonly update: readonly EndpointSlice[]
  readonly remove: readonly EndpointSlice[]
}

/** Slices of a service from the pods of its namespace. A service without a selector keeps the slices others made. */
export function planSlices(
  service: Service | undefined,
  pods: readonly Pod[],
  existing: readonly EndpointSlice[],
): SlicePlan {
  const ours = existing.filter((slice) => slice.metadata?.labels?.[MANAGED_BY_LABEL] === MANAGER)
  const wanted = service && isSelecting(service) && !service.metadata?.deletionTimestamp ? slicesOf(service, pods) : []
  const byName = new Map(ours.map((slice) => [slice.metadata?.name, slice]))
  const create: EndpointSlice[] = []
  const update: EndpointSlice[] = []
  for (const slice of wanted) {
    const current = byName.get(slice.metadata?.name)
    byName.delete(slice.metadata?.name)
    if (!current) create.push(slice)
    else if (!isSame(current, slice)) update.push(slice)
  }
  // Slices go with a deleted service by ownership; here only those its pods no longer need.
  return { create, update, remove: service ? [...byName.values()] : [] }
}

function isSelecting(service: Service): boolean {
  return service.spec?.type !== 'ExternalName' && Object.keys(service.spec?.selector ?? {}).length > 0
}

function isSame(current: EndpointSlice, wanted: EndpointSlice): boolean {
  return (
    jsonEqual(current.endpoints ?? [], wanted.endpoints ?? []) &&
    jsonEqual(current.ports ?? [], wanted.ports ?? []) &&
    jsonEqual(current.metadata?.labels, wanted.metadata?.labels)
  )
}

function slicesOf(service: Service, pods: readonly Pod[]): EndpointSlice[] {
  const groups = new Map<string, { ports: DiscoveryEndpointPort[]; endpoints: Endpoint[] }>()
  for (const pod of pods) {
    if (!isSelected(service, pod)) continue
    const ports = portsFor(service, pod)
    const key = canonicalJson(ports)
    const group = groups.get(key) ?? { ports, endpoints: [] }
    group.endpoints.push(endpointOf(service, pod))
    groups.set(key, group)
  }
  // An empty slice says that the Service exists and has no endpoints.
  if (groups.size === 0) groups.set('[]', { ports: [], endpoints: [] })
  return [...groups].map(([key, group]) => sliceOf(service, key, group.ports, group.endpoints))
}

function isSelected(service: Service, pod: Pod): boolean {
  const phase = pod.status?.phase
  if (!pod.status?.podIP || phase === 'Succeeded' || phase === 'Failed') return false
  const labels = pod.metadata?.labels ?? {}
  return Object.entries(service.spec?.selector ?? {}).every(([key, value]) => labels[key] === value)
}

function endpointOf(service: Service, pod: Pod): Endpoint {
  const isReady = pod.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false
  const isTerminating = pod.metadata?.deletionTimestamp !== undefined
  const { name = '', namespace = '', uid = '' } = pod.metadata ?? {}
  const { nodeName, hostname, subdomain } = pod.spec ?? {}
  return {
    addresses: [pod.status?.podIP ?? ''],
    conditions: {
      ready: service.spec?.publishNotReadyAddresses === true || (isReady && !isTerminating),
      serving: isReady,
      terminating: isTerminating,
    },
    ...(hostname && subdomain === service.metadata?.name && { hostname }),
    ...(nodeName && { nodeName }),
    targetRef: { kind: 'Pod', namespace, name, uid },
  }
}

function portsFor(service: Service, pod: Pod): DiscoveryEndpointPort[] {
  const ports: DiscoveryEndpointPort[] = []
  for (const servicePort of service.spec?.ports ?? []) {
    const port = targetPort(servicePort, pod)
    if (port === undefined) continue
    const { name = '', protocol = 'TCP', appProtocol } = servicePort
    ports.push({ name, port, protocol, ...(appProtocol !== undefined && { appProtocol }) })
  }
  return ports
}

/** The number a service port leads to in this pod; undefined where the pod has no port of that name. */
function targetPort(servicePort: ServicePort, pod: Pod): number | undefined {
  const target = servicePort.targetPort ?? servicePort.port
  if (typeof target === 'number') return target === 0 ? servicePort.port : target
  const protocol = servicePort.protocol ?? 'TCP'
  for (const container of [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])]) {
    for (const port of container.ports ?? []) {
      if (port.name === target && (port.protocol ?? 'TCP') === protocol) return port.containerPort
    }
  }
  return undefined
}

function sliceOf(service: Service, key: string, ports: DiscoveryEndpointPort[], endpoints: Endpoint[]): EndpointSlice {
  const { name = '', namespace = '', uid = '', labels } = service.metadata ?? {}
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: sliceName(name, uid, key),
      namespace,
      labels: {
        ...labels,
        [SERVICE_NAME_LABEL]: name,
        [MANAGED_BY_LABEL]: MANAGER,
        ...(service.spec?.clusterIP === 'None' && { [HEADLESS_LABEL]: '' }),
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name, uid, controller: true, blockOwnerDeletion: true }],
    },
    addressType: endpoints[0]?.addresses[0]?.includes(':') ? 'IPv6' : 'IPv4',
    endpoints,
    ports,
  }
}

/** Same service and same ports give the same name, so that a repeated pass finds what it made before. */
function sliceName(service: string, uid: string, key: string): string {
  const alphabet = 'bcdfghjklmnpqrstvwxz2456789'
  const hash = createHash('sha256').update(`${uid}\n${key}`).digest()
  const suffix = [...hash.subarray(0, 5)].map((byte) => alphabet[byte % alphabet.length]).join('')
  return `${service.slice(0, 57)}-${suffix}`
}
