import type {
  ConfigMap,
  Endpoints,
  Event,
  KubeObject,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Secret,
  Service,
  ServiceAccount,
} from '@corral/resources'
import { ageOf } from './human-duration.js'
import { summarizePod } from './pod-status.js'
import { printer, type RowCondition, type TablePrinter } from './printer.js'

const wide = { wide: true }

/** Cells most kinds share. */
export const nameCell = (object: KubeObject): string => object.metadata?.name ?? ''
export const ageCell = (object: KubeObject, now: Date): string => ageOf(object.metadata?.creationTimestamp, now)

/** `a=1,b=2` or `<none>`. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const parts = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return parts.sort().join(',') || '<none>'
}

/** At most three items, then how many more there are. */
export function shortList(items: readonly string[]): string {
  if (items.length > 3) return `${items.slice(0, 3).join(',')} + ${items.length - 3} more...`
  return items.join(',') || '<none>'
}

export const defaultPrinter: TablePrinter = printer([
  ['Name', nameCell],
  ['Age', ageCell],
])

export const podPrinter: TablePrinter = printer<Pod>(
  [
    ['Name', nameCell],
    ['Ready', (pod, now) => summarizePod(pod, now).ready],
    ['Status', (pod, now) => summarizePod(pod, now).status],
    ['Restarts', (pod, now) => summarizePod(pod, now).restarts],
    ['Age', ageCell],
    ['IP', (pod) => pod.status?.podIPs?.[0]?.ip || pod.status?.podIP || '<none>', wide],
    ['Node', (pod) => pod.spec?.nodeName || '<none>', wide],
    ['Nominated Node', (pod) => pod.status?.nominatedNodeName || '<none>', wide],
    ['Readiness Gates', readinessGates, wide],
  ],
  completion,
)

function readinessGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? []
  if (gates.length === 0) return '<none>'
  const isTrue = (type: string): boolean =>
    pod.status?.conditions?.some((each) => each.type === type && each.status === 'True') ?? false
  return `${gates.filter((gate) => isTrue(gate.conditionType)).length}/${gates.length}`
}

function completion(pod: Pod): RowCondition[] | undefined {
  const phase = pod.status?.phase
  if (phase === 'Succeeded') {
    return [{ type: 'Completed', status: 'True', reason: phase, message: 'The pod has completed successfully.' }]
  }
  if (phase === 'Failed') return [{ type: 'Completed', status: 'True', reason: phase, message: 'The pod failed.' }]
  return undefined
}

export const servicePrinter: TablePrinter = printer<Service>([
  ['Name', nameCell],
  ['Type', (service) => service.spec?.type ?? ''],
  ['Cluster-IP', (service) => service.spec?.clusterIPs?.[0] || service.spec?.clusterIP || '<none>'],
  ['External-IP', externalIp],
  ['Port(s)', servicePorts],
  ['Age', ageCell],
  ['Selector', (service) => labelsText(service.spec?.selector), wide],
])

function externalIp(service: Service): string {
  const { type, externalIPs = [], externalName } = service.spec ?? {}
  if (type === 'ExternalName') return externalName ?? ''
  if (type === 'LoadBalancer') {
    const ingress = (service.status?.loadBalancer?.ingress ?? []).map((each) => each.ip || each.hostname || '')
    return [...ingress.filter(Boolean), ...externalIPs].join(',') || '<pending>'
  }
  return externalIPs.join(',') || '<none>'
}

function servicePorts(service: Service): string {
  const ports = (service.spec?.ports ?? []).map(({ port, nodePort, protocol = 'TCP' }) =>
    nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
  )
  return ports.join(',') || '<none>'
}

export const namespacePrinter: TablePrinter = printer<Namespace>([
  ['Name', nameCell],
  ['Status', (namespace) => namespace.status?.phase ?? ''],
  ['Age', ageCell],
])

export const configMapPrinter: TablePrinter = printer<ConfigMap>([
  ['Name', nameCell],
  ['Data', (map) => Object.keys(map.data ?? {}).length + Object.keys(map.binaryData ?? {}).length],
  ['Age', ageCell],
])

export const secretPrinter: TablePrinter = printer<Secret>([
  ['Name', nameCell],
  ['Type', (secret) => secret.type ?? ''],
  ['Data', (secret) => Object.keys(secret.data ?? {}).length],
  ['Age', ageCell],
])

export const serviceAccountPrinter: TablePrinter = printer<ServiceAccount>([
  ['Name', nameCell],
  ['Secrets', (account) => account.secrets?.length ?? 0],
  ['Age', ageCell],
])

const ACCESS_MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}

function accessModes(modes: readonly string[] | undefined): string {
  const order = Object.keys(ACCESS_MODES)
  const known = [...new Set(modes ?? [])].filter((mode) => order.includes(mode))
  return known
    .sort((a, b) => order.indexOf(a) - order.indexOf(b))
    .map((mode) => ACCESS_MODES[mode])
    .join(',')
}

function volumePhase(object: PersistentVolume | PersistentVolumeClaim): string {
  return object.metadata?.deletionTimestamp ? 'Terminating' : (object.status?.phase ?? '')
}

export const claimPrinter: TablePrinter = printer<PersistentVolumeClaim>([
  ['Name', nameCell],
  ['Status', volumePhase],
  ['Volume', (claim) => claim.spec?.volumeName ?? ''],
  ['Capacity', (claim) => (claim.spec?.volumeName ? String(claim.status?.capacity?.storage ?? '') : '')],
  ['Access Modes', (claim) => (claim.spec?.volumeName ? accessModes(claim.status?.accessModes) : '')],
  ['StorageClass', (claim) => claim.spec?.storageClassName ?? ''],
  ['VolumeAttributesClass', (claim) => claim.spec?.volumeAttributesClassName || '<unset>'],
  ['Age', ageCell],
  ['VolumeMode', (claim) => claim.spec?.volumeMode || '<unset>', wide],
])

export const volumePrinter: TablePrinter = printer<PersistentVolume>([
  ['Name', nameCell],
  ['Capacity', (volume) => String(volume.spec?.capacity?.storage ?? '')],
  ['Access Modes', (volume) => accessModes(volume.spec?.accessModes)],
  ['Reclaim Policy', (volume) => volume.spec?.persistentVolumeReclaimPolicy ?? ''],
  ['Status', volumePhase],
  ['Claim', (volume) => claimText(volume)],
  ['StorageClass', (volume) => volume.spec?.storageClassName ?? ''],
  ['VolumeAttributesClass', (volume) => volume.spec?.volumeAttributesClassName || '<unset>'],
  ['Reason', (volume) => volume.status?.reason ?? ''],
  ['Age', ageCell],
  ['VolumeMode', (volume) => volume.spec?.volumeMode || '<unset>', wide],
])

function claimText(volume: PersistentVolume): string {
  const claim = volume.spec?.claimRef
  return claim ? `${claim.namespace ?? ''}/${claim.name ?? ''}` : ''
}

export const nodePrinter: TablePrinter = printer<Node>([
  ['Name', nameCell],
  ['Status', nodeStatus],
  ['Roles', nodeRoles],
  ['Age', ageCell],
  ['Version', (node) => node.status?.nodeInfo?.kubeletVersion ?? ''],
  ['Internal-IP', (node) => nodeAddress(node, 'InternalIP'), wide],
  ['External-IP', (node) => nodeAddress(node, 'ExternalIP'), wide],
  ['OS-Image', (node) => node.status?.nodeInfo?.osImage || '<unknown>', wide],
  ['Kernel-Version', (node) => node.status?.nodeInfo?.kernelVersion || '<unknown>', wide],
  ['Container-Runtime', (node) => node.status?.nodeInfo?.containerRuntimeVersion || '<unknown>', wide],
])

function nodeStatus(node: Node): string {
  const ready = node.status?.conditions?.find((each) => each.type === 'Ready')
  const words = [!ready ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady']
  if (node.spec?.unschedulable) words.push('SchedulingDisabled')
  return words.join(',')
}

function nodeRoles(node: Node): string {
  const prefix = 'node-role.kubernetes.io/'
  const roles: string[] = []
  for (const [key, value] of Object.entries(node.metadata?.labels ?? {})) {
    if (key.startsWith(prefix) && key.length > prefix.length) roles.push(key.slice(prefix.length))
    else if (key === 'kubernetes.io/role' && value) roles.push(value)
  }
  return [...new Set(roles)].sort().join(',') || '<none>'
}

function nodeAddress(node: Node, type: string): string {
  return node.status?.addresses?.find((each) => each.type === type)?.address ?? '<none>'
}

export const eventPrinter: TablePrinter = printer<Event>([
  ['Last Seen', lastSeen],
  ['Type', (event) => event.type ?? ''],
  ['Reason', (event) => event.reason ?? ''],
  ['Object', eventTarget],
  ['Subobject', (event) => event.involvedObject?.fieldPath ?? '', wide],
  ['Source', eventSource, wide],
  ['Message', (event) => (event.message ?? '').trim()],
  ['First Seen', firstSeen, wide],
  ['Count', (event) => event.series?.count ?? (event.count || 1), wide],
  ['Name', nameCell, wide],
])

function firstSeen(event: Event, now: Date): string {
  return ageOf(event.firstTimestamp || event.eventTime, now)
}

function lastSeen(event: Event, now: Date): string {
  if (event.series) return ageOf(event.series.lastObservedTime, now)
  return event.lastTimestamp ? ageOf(event.lastTimestamp, now) : firstSeen(event, now)
}

function eventTarget(event: Event): string {
  const kind = (event.involvedObject?.kind ?? '').toLowerCase()
  return event.involvedObject?.name ? `${kind}/${event.involvedObject.name}` : kind
}

function eventSource(event: Event): string {
  const component = event.source?.component || event.reportingComponent || ''
  const instance = event.source?.host || event.reportingInstance || ''
  return instance ? `${component}, ${instance}` : component
}

export const endpointsPrinter: TablePrinter = printer<Endpoints>([
  ['Name', nameCell],
  ['Endpoints', (object) => shortList(endpointTexts(object))],
  ['Age', ageCell],
])

function endpointTexts(object: Endpoints): string[] {
  return (object.subsets ?? []).flatMap((subset) =>
    (subset.addresses ?? []).flatMap((address) =>
      subset.ports?.length ? subset.ports.map((port) => `${address.ip}:${port.port}`) : [address.ip],
    ),
  )
}
