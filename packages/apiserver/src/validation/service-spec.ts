import { qualifiedNameError } from '@corral/resources'
import { type FieldError, forbiddenField, invalidValue, required } from '../errors/api-error.js'
import type { JsonObject } from '../objects/plain-json.js'
import { addressErrors, addressWarnings, cidrWarnings, parseCidr } from './addresses.js'
import {
  CIDR_TEXT,
  duplicate,
  ipAddress,
  label,
  labels,
  objectOf,
  objectsIn,
  oneOf,
  portNumber,
  portOrName,
  subdomain,
} from './rules.js'

/** What is wrong with a Service's spec once its address is chosen. */
export function serviceSpecErrors(spec: JsonObject): FieldError[] {
  const ports = objectsIn(spec.ports)
  const isExternal = spec.type === 'ExternalName'
  const errors: FieldError[] = []
  if (ports.length === 0 && spec.clusterIP !== 'None' && !isExternal) errors.push(required('spec.ports'))
  const [names, pairs] = [new Set<unknown>(), new Set<string>()]
  for (const [index, port] of ports.entries()) {
    const path = `spec.ports[${index}]`
    const { name, protocol, port: number, targetPort } = port
    if (!name) errors.push(...(ports.length > 1 ? [required(`${path}.name`)] : []))
    else errors.push(...label(`${path}.name`, name), ...(names.has(name) ? [duplicate(`${path}.name`, name)] : []))
    errors.push(...portNumber(`${path}.port`, number), ...oneOf(`${path}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']))
    if (!isExternal) errors.push(...portOrName(`${path}.targetPort`, targetPort))
    const protocolProblem = port.appProtocol ? qualifiedNameError(String(port.appProtocol)) : undefined
    if (protocolProblem) errors.push(invalidValue(`${path}.appProtocol`, port.appProtocol, protocolProblem))
    if (port.nodePort && (spec.type === 'ClusterIP' || isExternal))
      errors.push(forbiddenField(`${path}.nodePort`, `may not be used when \`type\` is '${String(spec.type)}'`))
    const pair = `${String(protocol)}/${String(number)}`
    if (pairs.has(pair)) errors.push(duplicate(path, { Protocol: protocol, Port: number }))
    names.add(name)
    pairs.add(pair)
  }
  errors.push(
    ...oneOf('spec.type', spec.type, ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']),
    ...oneOf('spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']),
    ...labels('spec.selector', spec.selector),
  )
  if (isExternal)
    errors.push(
      ...(spec.externalName ? subdomain('spec.externalName', spec.externalName) : [required('spec.externalName')]),
    )
  else if (spec.clusterIP === 'None' && (spec.type === 'NodePort' || spec.type === 'LoadBalancer'))
    errors.push(
      invalidValue('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${String(spec.type)} services`),
    )
  else if (spec.clusterIP && spec.clusterIP !== 'None') errors.push(...ipAddress('spec.clusterIPs[0]', spec.clusterIP))
  return [...errors, ...affinityErrors(spec), ...familyErrors(spec), ...outsideErrors(spec)]
}

const DAY_SECONDS = 86_400

function affinityErrors({ sessionAffinity, sessionAffinityConfig }: JsonObject): FieldError[] {
  if (sessionAffinity !== 'ClientIP') return []
  const { timeoutSeconds } = objectOf(objectOf(sessionAffinityConfig).clientIP)
  if (typeof timeoutSeconds !== 'number' || (timeoutSeconds > 0 && timeoutSeconds <= DAY_SECONDS)) return []
  const why = `must be greater than 0 and less than ${DAY_SECONDS}`
  return [invalidValue('spec.sessionAffinityConfig.clientIP.timeoutSeconds', timeoutSeconds, why)]
}

function familyErrors({ ipFamilies, ipFamilyPolicy }: JsonObject): FieldError[] {
  const families = Array.isArray(ipFamilies) ? ipFamilies : []
  return [
    ...oneOf('spec.ipFamilyPolicy', ipFamilyPolicy, ['PreferDualStack', 'RequireDualStack', 'SingleStack']),
    ...families.flatMap((family, index) => oneOf(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6'])),
  ]
}

/** Who comes from outside, and on which way. */
function outsideErrors(spec: JsonObject): FieldError[] {
  const errors = listed(spec.externalIPs).flatMap((ip, index) => addressErrors(`spec.externalIPs[${index}]`, ip))
  for (const [index, range] of listed(spec.loadBalancerSourceRanges).entries()) {
    if (!parseCidr(range)) errors.push(invalidValue(`spec.LoadBalancerSourceRanges[${index}]`, range, CIDR_TEXT))
  }
  const { externalTrafficPolicy, internalTrafficPolicy, type } = spec
  const isReached = type === 'LoadBalancer' || type === 'NodePort' || listed(spec.externalIPs).length > 0
  if (externalTrafficPolicy && !isReached) {
    const why = 'may only be set for externally-accessible services'
    errors.push(invalidValue('spec.externalTrafficPolicy', externalTrafficPolicy, why))
  } else errors.push(...oneOf('spec.externalTrafficPolicy', externalTrafficPolicy, ['Cluster', 'Local']))
  return [...errors, ...oneOf('spec.internalTrafficPolicy', internalTrafficPolicy, ['Cluster', 'Local'])]
}

const listed = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** What the author of a valid Service should know. */
export function serviceWarnings(spec: JsonObject): string[] {
  const isHeadless = spec.type === 'ClusterIP' && spec.clusterIP === 'None'
  const isExternal = spec.type === 'ExternalName'
  const ignored = (field: string, why: string): string[] => [`spec.${field} is ignored ${why}`]
  const headless = 'for headless services'
  return [
    ...(isHeadless && spec.loadBalancerIP ? ignored('loadBalancerIP', headless) : []),
    ...(isHeadless && listed(spec.externalIPs).length > 0 ? ignored('externalIPs', headless) : []),
    ...(isHeadless && spec.sessionAffinity !== 'None' ? ignored('SessionAffinity', headless) : []),
    ...listed(spec.externalIPs).flatMap((ip, index) => addressWarnings(`spec.externalIPs[${index}]`, ip)),
    ...addressWarnings('spec.loadBalancerIP', spec.loadBalancerIP),
    ...listed(spec.loadBalancerSourceRanges).flatMap((range, index) =>
      cidrWarnings(`spec.loadBalancerSourceRanges[${index}]`, range),
    ),
    ...(isExternal && listed(spec.externalIPs).length > 0
      ? ignored('externalIPs', 'when spec.type is "ExternalName"')
      : []),
    ...(!isExternal && spec.externalName ? ignored('externalName', 'when spec.type is not "ExternalName"') : []),
  ]
}
