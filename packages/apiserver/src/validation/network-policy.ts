import { isIP } from 'node:net'
import { type FieldError, invalidValue, required } from '../errors/api-error.js'
import type { JsonObject } from '../store/plain-json.js'
import { labels, objectOf, objectsIn, oneOf, portOrName } from './rules.js'

const CIDR_TEXT = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

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

interface Cidr {
  readonly bits: string
  readonly length: number
}

function parseCidr(text: unknown): Cidr | undefined {
  const [address = '', length = ''] = String(text).split('/')
  const family = isIP(address)
  const count = /^\d+$/.test(length) ? Number(length) : Number.NaN
  if (family === 0 || !(count <= (family === 4 ? 32 : 128))) return undefined
  return { bits: family === 4 ? bitsOf4(address) : bitsOf6(address), length: count }
}

const isInside = (inner: Cidr, whole: Cidr): boolean =>
  inner.bits.length === whole.bits.length &&
  inner.length > whole.length &&
  inner.bits.startsWith(whole.bits.slice(0, whole.length))

const bitsOf4 = (address: string): string =>
  address
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('')

function bitsOf6(address: string): string {
  const plain = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts) => {
    const [a, b, c, d] = parts.slice(0, 4).map(Number) as [number, number, number, number] // four numbers by the pattern
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  })
  const [head = '', tail] = plain.split('::')
  const groups = (part: string | undefined): string[] => (part ? part.split(':') : [])
  const before = groups(head)
  const after = groups(tail)
  const zeros = tail === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after]
    .map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0'))
    .join('')
}
