import { type FieldError, invalidValue, required } from '../errors/api-error.js'
import type { JsonObject } from '../objects/plain-json.js'
import { cidrWarnings, isInside, parseCidr } from './addresses.js'
import { CIDR_TEXT, labels, objectOf, objectsIn, oneOf, portOrName } from './rules.js'

/** What is wrong with the spec of a NetworkPolicy. */
export function networkPolicyErrors(spec: JsonObject): FieldError[] {
  const types = Array.isArray(spec.policyTypes) ? spec.policyTypes : []
  return [
    ...selectorErrors(spec.podSelector, 'spec.podSelector'),
    ...ruleErrors(spec.ingress, 'from', 'spec.ingress'),
    ...ruleErrors(spec.egress, 'to', 'spec.egress'),
    ...types.flatMap((type, index) => oneOf(`spec.policyTypes[${index}]`, type, ['Ingress', 'Egress'])),
  ]
}

const selectorErrors = (selector: unknown, path: string): FieldError[] =>
  labels(`${path}.matchLabels`, objectOf(selector).matchLabels)

function ruleErrors(rules: unknown, peers: 'from' | 'to', path: string): FieldError[] {
  return objectsIn(rules).flatMap((rule, index) => [
    ...objectsIn(rule.ports).flatMap(({ port, protocol }, at) => [
      ...oneOf(`${path}[${index}].ports[${at}].protocol`, protocol, ['TCP', 'UDP', 'SCTP']),
      ...(port === undefined ? [] : portOrName(`${path}[${index}].ports[${at}].port`, port)),
    ]),
    ...objectsIn(rule[peers]).flatMap((peer, at) => peerErrors(peer, `${path}[${index}].${peers}[${at}]`)),
  ])
}

function peerErrors({ podSelector, namespaceSelector, ipBlock }: JsonObject, path: string): FieldError[] {
  if (podSelector === undefined && namespaceSelector === undefined && ipBlock === undefined)
    return [required(path, 'must specify a peer')]
  const { cidr, except } = objectOf(ipBlock)
  return [
    ...selectorErrors(podSelector, `${path}.podSelector`),
    ...selectorErrors(namespaceSelector, `${path}.namespaceSelector`),
    ...(ipBlock === undefined ? [] : blockErrors(cidr, except, `${path}.ipBlock`)),
  ]
}

function blockErrors(cidr: unknown, except: unknown, path: string): FieldError[] {
  if (!cidr) return [required(`${path}.cidr`)]
  const whole = parseCidr(cidr)
  if (!whole) return [invalidValue(`${path}.cidr`, cidr, CIDR_TEXT)]
  return (Array.isArray(except) ? except : []).flatMap((part, index) => {
    const field = `${path}.except[${index}]`
    const inner = parseCidr(part)
    if (!inner) return [invalidValue(field, part, CIDR_TEXT)]
    return isInside(inner, whole) ? [] : [invalidValue(field, part, 'must be a strict subset of `cidr`')]
  })
}

/** What is said about its blocks of addresses besides. */
export function networkPolicyWarnings(spec: JsonObject): string[] {
  return (['ingress', 'egress'] as const).flatMap((direction) => {
    const peers = direction === 'ingress' ? 'from' : 'to'
    return objectsIn(spec[direction]).flatMap((rule, index) =>
      objectsIn(rule[peers]).flatMap(({ ipBlock }, at) => {
        const path = `spec.${direction}[${index}].${peers}[${at}].ipBlock`
        const { cidr, except } = objectOf(ipBlock)
        const parts = Array.isArray(except) ? except : []
        return [
          ...cidrWarnings(`${path}.cidr`, cidr),
          ...parts.flatMap((part, number) => cidrWarnings(`${path}.except[${number}]`, part)),
        ]
      }),
    )
  })
}
