import { Services } from '@corral/resources'
import { invalidValue } from '../errors/api-error.js'
import { isJsonObject } from '../objects/plain-json.js'
import { errorsOfChange, objectOf } from '../validation/rules.js'
import { serviceSpecErrors, serviceWarnings } from '../validation/service-spec.js'
import { describeKind, type KindDefinition } from './kind-definition.js'
import { fieldReaders } from './selectable-fields.js'

/** Services: a cluster IP that is unique but leads nowhere on one machine; endpoints are kept by a controller. */
export const serviceKind: KindDefinition = describeKind(Services, {
  shortNames: ['svc'],
  categories: ['all'],
  hasStatus: true,
  nameRule: 'label1035',
  createsOnUpdate: true,
  answersDeleteWithObject: true,
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  selectable: fieldReaders('spec.clusterIP', 'spec.type'),
  defaults(service) {
    const spec = isJsonObject(service.spec) ? service.spec : {}
    service.spec = spec
    spec.type ??= 'ClusterIP'
    spec.sessionAffinity ??= 'None'
    if (spec.sessionAffinity === 'ClientIP') spec.sessionAffinityConfig ??= { clientIP: { timeoutSeconds: 10_800 } }
    if (isReachedFromOutside(spec)) spec.externalTrafficPolicy ??= 'Cluster'
    if (spec.type === 'LoadBalancer') spec.allocateLoadBalancerNodePorts ??= true
    if (spec.type === 'ExternalName') return
    spec.internalTrafficPolicy ??= 'Cluster'
    for (const port of Array.isArray(spec.ports) ? spec.ports : []) {
      if (!isJsonObject(port)) continue
      port.protocol ??= 'TCP'
      if (port.targetPort === undefined || port.targetPort === '' || port.targetPort === 0) port.targetPort = port.port
    }
  },
  prepareCreate(service, context) {
    const spec = service.spec as Record<string, unknown>
    service.status = { loadBalancer: {} }
    if (spec.type === 'ExternalName') return
    if (spec.clusterIP !== 'None') {
      spec.clusterIP = context.allocateClusterIp(typeof spec.clusterIP === 'string' ? spec.clusterIP : undefined)
    }
    spec.clusterIPs = [spec.clusterIP]
    // Whatever its author will list as endpoints: an address of either family may be among them.
    const isAnyones = spec.clusterIP === 'None' && !hasEntries(spec.selector)
    spec.ipFamilies ??= isAnyones && spec.ipFamilyPolicy === undefined ? ['IPv4', 'IPv6'] : ['IPv4']
    spec.ipFamilyPolicy ??=
      isAnyones && Array.isArray(spec.ipFamilies) && spec.ipFamilies.length === 2 ? 'RequireDualStack' : 'SingleStack'
  },
  prepareUpdate(next, old) {
    const spec = next.spec as Record<string, unknown>
    const before = isJsonObject(old.spec) ? old.spec : {}
    if (spec.type === 'ExternalName' && before.type !== 'ExternalName')
      for (const field of ADDRESS_FIELDS) delete spec[field]
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) {
      if (spec.type !== 'ExternalName' && before[field] !== undefined) spec[field] ??= before[field]
    }
  },
  validate(service, old) {
    const spec = isJsonObject(service.spec) ? service.spec : {}
    const errors = errorsOfChange(service, old, ['spec'], () => serviceSpecErrors(spec))
    const before = isJsonObject(old?.spec) ? old.spec.clusterIP : undefined
    if (before && spec.clusterIP !== before && spec.type !== 'ExternalName') {
      errors.push(invalidValue('spec.clusterIPs[0]', [spec.clusterIP], 'may not change once set'))
    }
    return errors
  },
  warnings: (service) => serviceWarnings(objectOf(service.spec)),
})

/** What a Service without an address of its own does not have. */
const ADDRESS_FIELDS = ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy']

const hasEntries = (value: unknown): boolean => isJsonObject(value) && Object.keys(value).length > 0

const isReachedFromOutside = ({ type, externalIPs }: Record<string, unknown>): boolean =>
  type === 'LoadBalancer' ||
  type === 'NodePort' ||
  (type === 'ClusterIP' && Array.isArray(externalIPs) && externalIPs.length > 0)
