import { parseQuantity } from '@corral/resources'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { addressWarnings } from './addresses.js'
import { objectOf, objectsIn } from './rules.js'

const OLD_NODE_LABELS: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
const BYTES = ['memory', 'ephemeral-storage']

/** What the author of a valid pod should know: mostly what will not work as it is written. */
export function podWarnings(pod: JsonObject): string[] {
  const spec = objectOf(pod.spec)
  return [
    ...Object.keys(objectOf(spec.nodeSelector)).flatMap((key) =>
      OLD_NODE_LABELS[key] ? [`spec.nodeSelector[${key}]: ${OLD_NODE_LABELS[key]}`] : [],
    ),
    ...objectsIn(spec.topologySpreadConstraints).flatMap(({ labelSelector }, index) =>
      isJsonObject(labelSelector)
        ? []
        : [`spec.topologySpreadConstraints[${index}].labelSelector: a null labelSelector results in matching no pod`],
    ),
    ...objectsIn(spec.volumes).flatMap(({ gitRepo }, index) =>
      gitRepo ? [`spec.volumes[${index}].gitRepo: deprecated in v1.11, and disabled by default in v1.33+`] : [],
    ),
    ...hostAliasWarnings(spec),
    ...pullSecretWarnings(spec),
    ...['initContainers', 'containers'].flatMap((list) =>
      objectsIn(spec[list]).flatMap((container, index) => containerWarnings(container, `spec.${list}[${index}]`)),
    ),
    ...nameServerWarnings(spec),
  ]
}

function hostAliasWarnings(spec: JsonObject): string[] {
  const seen = new Set<unknown>()
  return objectsIn(spec.hostAliases).flatMap(({ ip }, index) => {
    const field = `spec.hostAliases[${index}].ip`
    const isRepeated = seen.has(ip)
    seen.add(ip)
    return [...(isRepeated ? [`${field}: duplicate ip "${String(ip)}"`] : []), ...addressWarnings(field, ip)]
  })
}

function pullSecretWarnings(spec: JsonObject): string[] {
  const seen = new Set<unknown>()
  return objectsIn(spec.imagePullSecrets).flatMap(({ name = '' }, index) => {
    const field = `spec.imagePullSecrets[${index}].name`
    const isRepeated = seen.has(name)
    seen.add(name)
    if (name === '') return [`${field}: invalid empty name ""`]
    return isRepeated ? [`${field}: duplicate name "${String(name)}"`] : []
  })
}

function nameServerWarnings({ dnsConfig }: JsonObject): string[] {
  const { nameservers } = objectOf(dnsConfig)
  const list = Array.isArray(nameservers) ? nameservers : []
  return list.flatMap((ip, index) => addressWarnings(`spec.dnsConfig.nameservers[${index}]`, ip))
}

function containerWarnings(container: JsonObject, path: string): string[] {
  return [...fractionWarnings(container, path), ...variableWarnings(container, path), ...portWarnings(container, path)]
}

function fractionWarnings({ resources }: JsonObject, path: string): string[] {
  const { limits, requests } = objectOf(resources)
  return BYTES.flatMap((name) =>
    Object.entries({ limits, requests }).flatMap(([list, amounts]) => {
      const text = objectOf(amounts)[name]
      const quantity = typeof text === 'string' ? parseQuantity(text) : undefined
      return quantity && quantity.nanos % 1_000_000_000n !== 0n
        ? [`${path}.resources.${list}[${name}]: fractional byte value "${text}" is invalid, must be an integer`]
        : []
    }),
  )
}

/** A second definition of a variable hides the first, unless it is made from it. */
function variableWarnings({ env }: JsonObject, path: string): string[] {
  const values = new Map<unknown, unknown>()
  return objectsIn(env).flatMap(({ name, value }, index) => {
    const isHidden = values.has(name) && !String(value ?? '').includes(`$(${String(name)})`)
    values.set(name, value)
    return isHidden
      ? [`${path}.env[${index}]: hides previous definition of "${String(name)}", which may be dropped when using apply`]
      : []
  })
}

function portWarnings({ ports }: JsonObject, path: string): string[] {
  const first = new Map<string, string>()
  return objectsIn(ports).flatMap(({ name = '', hostPort = 0, containerPort, protocol, hostIP = '' }, index) => {
    const field = `${path}.ports[${index}]`
    const key = [containerPort, protocol, hostPort, hostIP].join()
    const other = first.get(key)
    if (other === undefined) first.set(key, field)
    const port = `{Name:${String(name)} HostPort:${String(hostPort)} ContainerPort:${String(containerPort)} Protocol:${String(protocol)} HostIP:${String(hostIP)}}`
    return [
      ...(hostIP && !hostPort ? [`${field}: hostIP set without hostPort: ${port}`] : []),
      ...(other === undefined ? [] : [`${field}: duplicate port definition with ${other}`]),
    ]
  })
}
