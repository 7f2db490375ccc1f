import { isIP } from 'node:net'
import { type FieldError, invalidValue } from '../errors/api-error.js'

/** An IP address, however it was written. */
export interface Address {
  /** Four or sixteen. */
  readonly bytes: readonly number[]
  /** An IPv4 address in IPv6 clothes. */
  readonly isMapped: boolean
  /** Not one that only lenient readers take: no zeros in front of a decimal number. */
  readonly isStandard: boolean
}

/** A network: the address as written, and how many of its bits name the network. */
export interface Cidr extends Address {
  readonly length: number
}

/** Reads an address the lenient way: zeros in front of a decimal number are old habit and allowed. */
export function parseAddress(text: unknown): Address | undefined {
  if (typeof text !== 'string') return undefined
  const plain = text.includes(':') ? text : text.replace(/(^|\.)0+(?=\d)/g, '$1')
  const family = isIP(plain)
  if (family === 0 || text.includes('%')) return undefined
  const bytes = family === 4 ? plain.split('.').map(Number) : bytesOf6(plain)
  const isMapped =
    family === 6 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  return { bytes, isMapped, isStandard: plain === text }
}

export function parseCidr(text: unknown): Cidr | undefined {
  const [host, length = '', ...rest] = String(text).split('/')
  const address = parseAddress(host)
  if (!address || rest.length > 0 || !/^\d+$/.test(length) || Number(length) > address.bytes.length * 8)
    return undefined
  const isStandard = address.isStandard && String(Number(length)) === length
  return { ...address, isStandard, length: Number(length) }
}

/** Whether one network is a real part of the other. */
export function isInside(inner: Cidr, whole: Cidr): boolean {
  if (inner.bytes.length !== whole.bytes.length || inner.length <= whole.length) return false
  return sameBytes(networkBytes(inner.bytes, whole.length), networkBytes(whole.bytes, whole.length))
}

const IP_TEXT = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'

/** What is wrong with an address that others are to reach, of the given family where one is named. */
export function addressErrors(field: string, text: unknown, family?: 'IPv4' | 'IPv6'): FieldError[] {
  const address = parseAddress(text)
  const why = address ? addressProblem(address, String(text), family) : IP_TEXT
  return why === undefined ? [] : [invalidValue(field, text ?? '', why)]
}

function addressProblem({ bytes, isMapped }: Address, text: string, family?: 'IPv4' | 'IPv6'): string | undefined {
  if (family === 'IPv4' && bytes.length === 16 && !isMapped) return 'must be an IPv4 address'
  if (family === 'IPv6' && bytes.length === 4) return 'must be an IPv6 address'
  const canonical = written(bytes, isMapped)
  if (family === 'IPv6' && canonical !== text) return `must be in canonical form ("${canonical}")`
  return reserved.find(({ holds }) => holds(bytes))?.why(text)
}

/** Addresses that lead nowhere from another machine. */
const reserved: readonly { holds(bytes: readonly number[]): boolean; why(text: string): string }[] = [
  { holds: (bytes) => bytes.every((byte) => byte === 0), why: (text) => `may not be unspecified (${text})` },
  {
    holds: (bytes) =>
      bytes.length === 4 ? bytes[0] === 127 : bytes.every((byte, index) => byte === (index === 15 ? 1 : 0)),
    why: () => 'may not be in the loopback range (127.0.0.0/8, ::1/128)',
  },
  {
    holds: ([first, second = 0, ...rest]) =>
      rest.length === 2 ? first === 169 && second === 254 : first === 0xfe && (second & 0xc0) === 0x80,
    why: () => 'may not be in the link-local range (169.254.0.0/16, fe80::/10)',
  },
  {
    holds: ([first, second = 0, third, ...rest]) =>
      rest.length === 1 ? first === 224 && second === 0 && third === 0 : first === 0xff && (second & 0x0f) === 2,
    why: () => 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
  },
]

/** What a server says about an address that programs read differently; nothing about one it refuses. */
export function addressWarnings(field: string, text: unknown): string[] {
  const address = parseAddress(text)
  if (!address) return []
  const preferred = written(address.bytes, address.isMapped)
  if (!address.isStandard || address.isMapped) return [nonStandard(field, 'IP address', text, preferred)]
  return address.bytes.length === 16 && preferred !== text
    ? [`${field}: IPv6 address "${String(text)}" should be in RFC 5952 canonical format ("${preferred}")`]
    : []
}

/** The same about a network, which may also have bits beyond its length. */
export function cidrWarnings(field: string, text: unknown): string[] {
  const cidr = parseCidr(text)
  if (!cidr) return []
  const { bytes, isMapped, length } = cidr
  const network = networkBytes(bytes, length)
  const shownLength = isMapped && length >= 96 ? length - 96 : length
  const preferred = `${written(network, isMapped && length >= 96)}/${shownLength}`
  const warnings: string[] = []
  if (!sameBytes(network, bytes)) {
    const single = `${written(bytes, isMapped)}/${bytes.length * 8}`
    warnings.push(
      `${field}: CIDR value "${String(text)}" is ambiguous in this context (should be "${preferred}" or "${single}"?)`,
    )
  }
  if (!cidr.isStandard || isMapped) warnings.push(nonStandard(field, 'CIDR value', text, preferred))
  if (warnings.length === 0 && bytes.length === 16 && preferred !== text)
    warnings.push(`${field}: IPv6 CIDR value "${String(text)}" should be in RFC 5952 canonical format ("${preferred}")`)
  return warnings
}

const nonStandard = (field: string, what: string, text: unknown, use: string): string =>
  `${field}: non-standard ${what} "${String(text)}" will be considered invalid in a future Kubernetes release: use "${use}"`

const sameBytes = (a: readonly number[], b: readonly number[]): boolean => a.every((byte, index) => byte === b[index])

const networkBytes = (bytes: readonly number[], length: number): number[] =>
  bytes.map((byte, index) => {
    const kept = Math.min(8, Math.max(0, length - index * 8))
    return byte & (0xff << (8 - kept)) & 0xff
  })

function written(bytes: readonly number[], asIpv4: boolean): string {
  if (bytes.length === 4) return bytes.join('.')
  if (asIpv4) return bytes.slice(12).join('.')
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bytes[index * 2]! << 8) | bytes[index * 2 + 1]!).toString(16),
  )
  return canonical6(groups.join(':'))
}

/** URLs know one form of each address: the one RFC 5952 asks for. */
const canonical6 = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1)

function bytesOf6(address: string): number[] {
  const [head = '', tail] = canonical6(address).split('::')
  const groups = (part: string | undefined): number[] =>
    part ? part.split(':').map((group) => Number.parseInt(group, 16)) : []
  const [front, back] = [groups(head), groups(tail)]
  const all = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back]
  return all.flatMap((group) => [group >> 8, group & 0xff])
}
