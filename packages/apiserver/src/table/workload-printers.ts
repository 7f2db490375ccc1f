import type {
  ClusterRoleBinding,
  Deployment,
  EndpointSlice,
  EventsV1Event,
  KubeObject,
  LabelSelector,
  Lease,
  MutatingWebhookConfiguration,
  NetworkPolicy,
  PodDisruptionBudget,
  PodTemplateSpec,
  ReplicaSet,
  RoleBinding,
  RuntimeClass,
  StorageClass,
} from '@corral/resources'
import { ageCell, nameCell, shortList } from './core-printers.js'
import { ageOf } from './human-duration.js'
import { printer, type TablePrinter } from './printer.js'

const wide = { wide: true }
const integer = { type: 'integer' }

/** `a=1,b in (x,y)` as kubectl shows a selector; an empty one selects everything. */
function selectorText(selector: LabelSelector | undefined): string {
  if (!selector) return '<none>'
  const parts = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    if (operator === 'Exists') parts.push(key)
    else if (operator === 'DoesNotExist') parts.push(`!${key}`)
    else parts.push(`${key} ${operator.toLowerCase()} (${[...values].sort().join(',')})`)
  }
  return parts.sort().join(',') || '<none>'
}

const containerNames = (template: PodTemplateSpec | undefined): string =>
  (template?.spec?.containers ?? []).map((each) => each.name).join(',')
const containerImages = (template: PodTemplateSpec | undefined): string =>
  (template?.spec?.containers ?? []).map((each) => each.image ?? '').join(',')

export const scalePrinter: TablePrinter = printer<
  KubeObject & { spec?: { replicas?: number }; status?: { replicas?: number } }
>([
  ['Name', nameCell],
  ['Desired', ({ spec }) => spec?.replicas ?? 0, integer],
  ['Available', ({ status }) => status?.replicas ?? 0, integer],
  ['Age', ageCell],
])

export const deploymentPrinter: TablePrinter = printer<Deployment>([
  ['Name', nameCell],
  ['Ready', (object) => `${object.status?.readyReplicas ?? 0}/${object.spec?.replicas ?? 1}`],
  ['Up-to-date', (object) => object.status?.updatedReplicas ?? 0],
  ['Available', (object) => object.status?.availableReplicas ?? 0],
  ['Age', ageCell],
  ['Containers', (object) => containerNames(object.spec?.template), wide],
  ['Images', (object) => containerImages(object.spec?.template), wide],
  ['Selector', (object) => selectorText(object.spec?.selector), wide],
])

export const replicaSetPrinter: TablePrinter = printer<ReplicaSet>([
  ['Name', nameCell],
  ['Desired', (object) => object.spec?.replicas ?? 1, integer],
  ['Current', (object) => object.status?.replicas ?? 0, integer],
  ['Ready', (object) => object.status?.readyReplicas ?? 0, integer],
  ['Age', ageCell],
  ['Containers', (object) => containerNames(object.spec?.template), wide],
  ['Images', (object) => containerImages(object.spec?.template), wide],
  ['Selector', (object) => selectorText(object.spec?.selector), wide],
])

export const leasePrinter: TablePrinter = printer<Lease>([
  ['Name', nameCell],
  ['Holder', (lease) => lease.spec?.holderIdentity ?? ''],
  ['Age', ageCell],
])

export const networkPolicyPrinter: TablePrinter = printer<NetworkPolicy>([
  ['Name', nameCell],
  ['Pod-Selector', (policy) => selectorText(policy.spec?.podSelector)],
  ['Age', ageCell],
])

export const endpointSlicePrinter: TablePrinter = printer<EndpointSlice>([
  ['Name', nameCell],
  ['AddressType', (slice) => slice.addressType],
  ['Ports', (slice) => unset(shortList((slice.ports ?? []).map((each) => String(each.port ?? each.name ?? '*'))))],
  ['Endpoints', (slice) => unset(shortList((slice.endpoints ?? []).flatMap((each) => each.addresses)))],
  ['Age', ageCell],
])

const unset = (text: string): string => (text === '<none>' ? '<unset>' : text)

export const disruptionBudgetPrinter: TablePrinter = printer<PodDisruptionBudget>([
  ['Name', nameCell],
  ['Min Available', (budget) => String(budget.spec?.minAvailable ?? 'N/A')],
  ['Max Unavailable', (budget) => String(budget.spec?.maxUnavailable ?? 'N/A')],
  ['Allowed Disruptions', (budget) => budget.status?.disruptionsAllowed ?? 0, integer],
  ['Age', ageCell],
])

export const runtimeClassPrinter: TablePrinter = printer<RuntimeClass>([
  ['Name', nameCell],
  ['Handler', (object) => object.handler],
  ['Age', ageCell],
])

export const storageClassPrinter: TablePrinter = printer<StorageClass>([
  ['Name', storageClassName],
  ['Provisioner', (object) => object.provisioner],
  ['ReclaimPolicy', (object) => object.reclaimPolicy ?? 'Delete'],
  ['VolumeBindingMode', (object) => object.volumeBindingMode ?? 'Immediate'],
  ['AllowVolumeExpansion', (object) => object.allowVolumeExpansion ?? false],
  ['Age', ageCell],
])

function storageClassName(object: StorageClass): string {
  const isDefault = object.metadata?.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true'
  return isDefault ? `${nameCell(object)} (default)` : nameCell(object)
}

/** Kinds of which only the creation time is worth a column. */
export const createdAtPrinter: TablePrinter = printer<KubeObject>([
  ['Name', nameCell],
  ['Created At', (object) => object.metadata?.creationTimestamp ?? '', { type: 'date' }],
])

export const roleBindingPrinter: TablePrinter = printer<RoleBinding | ClusterRoleBinding>([
  ['Name', nameCell],
  ['Role', (binding) => `${binding.roleRef?.kind ?? ''}/${binding.roleRef?.name ?? ''}`],
  ['Age', ageCell],
  ['Users', (binding) => subjects(binding, 'User'), wide],
  ['Groups', (binding) => subjects(binding, 'Group'), wide],
  ['ServiceAccounts', (binding) => subjects(binding, 'ServiceAccount'), wide],
])

function subjects(binding: RoleBinding | ClusterRoleBinding, kind: string): string {
  return (binding.subjects ?? [])
    .filter((subject) => subject.kind === kind)
    .map(({ namespace, name }) => (kind === 'ServiceAccount' ? `${namespace ?? ''}/${name}` : name))
    .join(', ')
}

export const webhookConfigurationPrinter: TablePrinter = printer<MutatingWebhookConfiguration>([
  ['Name', nameCell],
  ['Webhooks', (object) => object.webhooks?.length ?? 0, integer],
  ['Age', ageCell],
])

export const eventsV1Printer: TablePrinter = printer<EventsV1Event>([
  ['Last Seen', eventLastSeen],
  ['Type', (event) => event.type ?? ''],
  ['Reason', (event) => event.reason ?? ''],
  ['Object', eventTarget],
  ['Subobject', (event) => event.regarding?.fieldPath ?? '', wide],
  ['Source', eventSource, wide],
  ['Message', (event) => (event.note ?? '').trim()],
  ['First Seen', eventFirstSeen, wide],
  ['Count', (event) => event.series?.count ?? (event.deprecatedCount || 1), wide],
  ['Name', nameCell, wide],
])

function eventFirstSeen(event: EventsV1Event, now: Date): string {
  return ageOf(event.deprecatedFirstTimestamp || event.eventTime, now)
}

function eventLastSeen(event: EventsV1Event, now: Date): string {
  if (event.series) return ageOf(event.series.lastObservedTime, now)
  return event.deprecatedLastTimestamp ? ageOf(event.deprecatedLastTimestamp, now) : eventFirstSeen(event, now)
}

function eventTarget(event: EventsV1Event): string {
  const kind = (event.regarding?.kind ?? '').toLowerCase()
  return event.regarding?.name ? `${kind}/${event.regarding.name}` : kind
}

function eventSource(event: EventsV1Event): string {
  const component = event.deprecatedSource?.component || event.reportingController || ''
  const instance = event.deprecatedSource?.host || event.reportingInstance || ''
  return instance ? `${component}, ${instance}` : component
}
