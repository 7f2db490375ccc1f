import { type FieldError, required } from '../errors/api-error.js'
import type { JsonObject } from '../store/plain-json.js'
import { duplicate, ipAddress, label, labels, objectsIn, oneOf, portNumber, portOrName, subdomain } from './rules.js'

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
  else if (spec.clusterIP && spec.clusterIP !== 'None') errors.push(...ipAddress('spec.clusterIPs[0]', spec.clusterIP))
  return errors
}
