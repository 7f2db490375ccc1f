import { lookup } from 'node:dns/promises'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { Readable } from 'node:stream'

export interface FetchRules {
  /**
   * The registries this machine is configured to use, as `host` or `host:port`. They are contacted even on private addresses;
   * other ports of the same host are not: beside a registry on loopback they are the services of this machine.
   */
  registryHosts(): Promise<ReadonlySet<string>>
  /** Those of them that have been read by now: reading all of them starts every package client of the machine. */
  knownRegistryHosts(): ReadonlySet<string>
  /** False for addresses of this machine and of clouds' metadata services, which nothing but a registry's own setting may name. */
  mayReach(address: string): boolean
}

export type Fetch = (url: URL, init: { headers: Record<string, string>; signal: AbortSignal }) => Promise<Response>

const privateNetworks = new BlockList()
privateNetworks.addSubnet('10.0.0.0', 8, 'ipv4')
privateNetworks.addSubnet('172.16.0.0', 12, 'ipv4')
privateNetworks.addSubnet('192.168.0.0', 16, 'ipv4')
privateNetworks.addSubnet('fc00::', 7, 'ipv6')

const isPrivate = (address: string): boolean => privateNetworks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/**
 * `fetch` for addresses that come from outside: an index names files on other hosts, and registries redirect. The
 * publisher of a package chooses them, so such a host must not be this machine, nor in a private network unless a registry
 * is there too. The address that is dialled is the one that was checked.
 */
export function guardedFetch(rules: FetchRules, plainFetch: typeof fetch = fetch, stallMs: number = 300_000): Fetch {
  const addressesOf = async (host: string): Promise<string[]> =>
    isIP(host) ? [host] : (await lookup(host, { all: true })).map(({ address }) => address)

  async function hasPrivateRegistry(): Promise<boolean> {
    const names = [...(await rules.registryHosts())].map((host) => hostOf(new URL(`http://${host}/`)))
    const found = await Promise.all(names.map((name) => addressesOf(name).catch(() => [])))
    return found.flat().some((address) => isPrivate(address) || !rules.mayReach(address))
  }

  return async (url, init) => {
    if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Error(`it leads to ${url.protocol} addresses`)
    const askRegistry = (): Promise<Response> => plainFetch(url, { ...init, redirect: 'manual' })
    if (rules.knownRegistryHosts().has(url.host)) return await askRegistry()
    const addresses = await addressesOf(hostOf(url))
    const reachable = addresses.filter((address) => rules.mayReach(address))
    const isPublic = reachable.length === addresses.length && !reachable.some(isPrivate)
    if (!isPublic && (await rules.registryHosts()).has(url.host)) return await askRegistry()
    const isFree = !reachable.some(isPrivate) || (await hasPrivateRegistry())
    const usable = isFree ? reachable : reachable.filter((address) => !isPrivate(address))
    const [first] = usable
    if (first === undefined)
      throw new Error(`it leads to ${url.hostname}, which is this machine or in a private network`)
    return await ask(url, init, usable, stallMs)
  }
}

/** Without the brackets of an IPv6 address. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

function ask(
  url: URL,
  { headers, signal }: Parameters<Fetch>[1],
  addresses: readonly string[],
  stallMs: number,
): Promise<Response> {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  const checked: LookupFunction = (_host, options, callback) => {
    const [first] = found
    if (options.all) callback(null, found)
    else callback(null, first?.address ?? '', first?.family)
  }
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const request = send(url, { headers, signal, lookup: checked, agent: false }, (answer) => {
      // As `fetch` does by itself. Without it a host that stops sending is waited for until the platform ends, and everybody who
      // asks for the same file waits with it.
      answer.setTimeout(stallMs, () => answer.destroy(new Error(`${url.host} sent nothing for ${stallMs / 1000} s`)))
      try {
        resolve(responseOf(url, answer))
      } catch (error) {
        answer.destroy()
        reject(error)
      }
    })
    request.on('error', reject)
    request.end()
  })
}

function responseOf(url: URL, answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 502
  const headers = Object.entries(answer.headersDistinct).flatMap(([name, values]) =>
    (values ?? []).map((value): [string, string] => [name, value]),
  )
  const isEmpty = status === 204 || status === 205 || status === 304
  if (isEmpty) answer.resume()
  // Node's web streams and those of the DOM library are the same objects under two types.
  const body = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>)
  const response = new Response(body, { status, headers })
  Object.defineProperty(response, 'url', { value: url.href })
  return response
}
