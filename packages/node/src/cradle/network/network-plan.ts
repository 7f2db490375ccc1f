import { isIPv4 } from 'node:net'
import type { EgressRule, HostService, PodPlan } from '../../isolation/isolation.js'

/** Where a connection from inside goes to once it has been let through. */
export type Destination =
  | { kind: 'host'; host: string; port: number; mayBeLoopback: boolean }
  | { kind: 'service'; target: HostService['target'] }

export interface NetworkPlan {
  /** Address ranges answered inside the namespace itself. */
  routes: readonly string[]
  dns: readonly string[]
  listeners: readonly { address: string; port: number }[]
  names: ReadonlyMap<string, string>
  /** By `address:port`. */
  destinations: ReadonlyMap<string, Destination>
  wildcards: readonly EgressRule[]
  /** The next synthetic address to hand out, as a number below the pool. */
  nextAddress: number
}

/** Set aside for benchmarks of network devices (RFC 2544), so no real host has such an address. */
const pool = '198.18.0.0/15'
const maxAddresses = 4096
/** Resolvers programs bring along in their own configuration: questions to them are answered as well. */
const resolvers = ['127.0.0.1', '8.8.8.8', '8.8.4.4', '1.1.1.1', '1.0.0.1', '9.9.9.9']

export function syntheticAddress(index: number): string {
  return `198.18.${(index >> 8) & 0xff}.${index & 0xff}`
}

/** Synthetic addresses a pod was given before: programs remember what a name resolved to. */
export interface HandedOut {
  addresses: ReadonlyMap<string, string>
  next: number
}

const nothingHandedOut: HandedOut = { addresses: new Map(), next: 2 }

/**
 * Which addresses, listeners and names a pod's network gets. Every allowed name has its own synthetic address and a
 * listener per allowed port on exactly that address, so that the pod's own servers keep their ports elsewhere. A pod
 * without egress gets no listener at all.
 */
export function planNetwork(
  pod: Pick<PodPlan, 'podIP' | 'egress' | 'services'>,
  { addresses, next: firstFree }: HandedOut = nothingHandedOut,
): NetworkPlan {
  const names = new Map<string, string>()
  const destinations = new Map<string, Destination>()
  const routes = new Set<string>([`${pod.podIP}/32`])
  const wildcards = pod.egress.filter(({ host }) => host.startsWith('*.'))
  let next = firstFree
  for (const service of pod.services) {
    const destination: Destination = { kind: 'service', target: service.target }
    if (service.onLoopback) destinations.set(`127.0.0.1:${service.port}`, destination)
    if (service.names.length === 0) continue
    const known = service.names.map((name) => addresses.get(normalizeName(name))).find((address) => address)
    const address = known ?? syntheticAddress(next++)
    for (const name of service.names) names.set(normalizeName(name), address)
    destinations.set(`${address}:${service.port}`, destination)
  }
  for (const { host, port } of pod.egress) {
    if (host.startsWith('*.')) continue
    const name = normalizeName(host)
    const literal = name === 'localhost' ? '127.0.0.1' : name
    const address = isIPv4(literal) ? literal : (names.get(name) ?? addresses.get(name) ?? syntheticAddress(next++))
    if (isIPv4(literal)) routes.add(`${literal}/32`)
    else names.set(name, address)
    // A rule that names a loopback address was meant; a host name that merely resolves to one was not.
    destinations.set(`${address}:${port}`, { kind: 'host', host: literal, port, mayBeLoopback: isIPv4(literal) })
  }
  const hasNames = names.size > 0 || wildcards.length > 0
  if (hasNames) {
    routes.add(pool)
    for (const address of resolvers) routes.add(`${address}/32`)
  }
  return {
    routes: [...routes].filter((route) => !route.startsWith('127.')),
    dns: hasNames ? resolvers : [],
    listeners: [...destinations.keys()].map(splitPlace),
    names,
    destinations,
    wildcards,
    nextAddress: next,
  }
}

/** The ports a name is allowed on by the pod's wildcard rules. `*.example.org` covers every depth but not the bare name. */
export function wildcardPorts(name: string, wildcards: readonly EgressRule[]): number[] {
  const ports = wildcards
    .filter(({ host }) => normalizeName(name).endsWith(normalizeName(host.slice(1))))
    .map(({ port }) => port)
  return [...new Set(ports)]
}

export function canHandOut(index: number): boolean {
  return index < maxAddresses
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

function splitPlace(place: string): { address: string; port: number } {
  const colon = place.lastIndexOf(':')
  return { address: place.slice(0, colon), port: Number(place.slice(colon + 1)) }
}
