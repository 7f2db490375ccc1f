import { dns1123SubdomainError, type ObjectMeta } from '@corral/resources'
import { type FieldError, invalidValue } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { ipAddress, ipFamily } from '../validation/rules.js'

/**
 * One address in two fields: `podIP` is the first of `podIPs`, and where they differ the older field is believed. What a
 * node agent does not know of is kept, and who owns the pod is none of its business.
 */
export function preparePodStatus(pod: JsonObject, old: JsonObject): void {
  keepOwners(pod.metadata as ObjectMeta, old.metadata as ObjectMeta)
  const before = isJsonObject(old.status) ? old.status : {}
  const { podIP, podIPs, ...rest } = isJsonObject(pod.status) ? pod.status : {}
  if (Array.isArray(rest.conditions)) rest.conditions = rest.conditions.map(withTimes)
  for (const field of KEPT) if (before[field] !== undefined) rest[field] ??= before[field]
  const listed = addresses(podIPs)
  const list = podIP && podIP !== listed[0] ? [podIP] : listed
  if (list.length === 0) pod.status = rest
  else
    pod.status = {
      ...rest,
      ...(list[0] ? { podIP: list[0] } : {}),
      podIPs: list.map((ip) => (ip === undefined ? {} : { ip })),
    }
}

function keepOwners(metadata: ObjectMeta, old: ObjectMeta): void {
  if (old.ownerReferences) metadata.ownerReferences = old.ownerReferences
  else delete metadata.ownerReferences
}

/** Times that were never set are shown. */
function withTimes(condition: unknown): unknown {
  if (!isJsonObject(condition)) return condition
  const { lastProbeTime, lastTransitionTime } = condition
  if (lastProbeTime !== undefined && lastTransitionTime !== undefined) return condition
  return { ...condition, lastProbeTime: lastProbeTime ?? null, lastTransitionTime: lastTransitionTime ?? null }
}

const KEPT = ['qosClass', 'observedGeneration'] as const

/** What is wrong with a pod's status, as far as Kubernetes looks at it. */
export function validatePodStatus(pod: JsonObject, old: JsonObject): FieldError[] {
  const status = isJsonObject(pod.status) ? pod.status : {}
  const before = isJsonObject(old.status) ? old.status : {}
  const { hostIP, nominatedNodeName, observedGeneration, qosClass } = status
  const errors: FieldError[] = []
  const nodeProblem = nominatedNodeName ? dns1123SubdomainError(String(nominatedNodeName)) : undefined
  if (nodeProblem) errors.push(invalidValue('status.nominatedNodeName', nominatedNodeName, nodeProblem))
  if (typeof observedGeneration === 'number' && observedGeneration < 0)
    errors.push(invalidValue('status.observedGeneration', observedGeneration, 'must be a non-negative integer'))
  if (before.qosClass && qosClass !== before.qosClass)
    errors.push(invalidValue('status.qosClass', qosClass ?? '', 'field is immutable'))
  errors.push(...addressErrors(addresses(status.podIPs), 'status.podIPs'))
  const hosts = addresses(status.hostIPs)
  if (hosts.length > 0 && hosts[0] !== hostIP)
    errors.push(invalidValue('status.hostIPs[0].ip', hosts[0] ?? '', 'must be equal to `hostIP`'))
  errors.push(...addressErrors(hosts, 'status.hostIPs'))
  return errors
}

const addresses = (list: unknown): unknown[] =>
  Array.isArray(list) ? list.map((entry) => (isJsonObject(entry) ? entry.ip : undefined)) : []

function addressErrors(list: readonly unknown[], field: string): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, ip] of list.entries()) errors.push(...ipAddress(`${field}[${index}]`, ip))
  if (list.length < 2) return errors
  const isDualStack = list.length === 2 && ipFamily(list[0]) + ipFamily(list[1]) === 10
  if (!isDualStack) {
    const value = list.map((ip) => ({ IP: ip ?? '' }))
    errors.push(invalidValue(field, value, 'may specify no more than one IP for each IP family'))
  }
  return errors
}
