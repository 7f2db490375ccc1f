import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

/**
 * Addresses a mere name must not lead to: loopback, link-local (the metadata of clouds), other places clouds keep their
 * metadata, carriers' and pods' own networks, multicast, and what is set aside. Private networks are open to a name that
 * was granted: package mirrors live there.
 */
const forbidden = new BlockList()
const forbiddenRanges: readonly [string, number][] = [
  ['0.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['192.0.0.0', 24],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
  // IPv4 inside IPv6 in forms that are no longer in use: only a tunnel would still understand them.
  ['::', 96],
  ['::ffff:0:0:0', 96],
  ['64:ff9b:1::', 48],
  ['2001::', 32],
  ['2002::', 16],
  // The metadata of Amazon, Google, Oracle and Scaleway over IPv6: private addresses like others, but always theirs.
  ['fd00:ec2::', 32],
  ['fd20:ce::', 32],
  ['fd00:c1::a9fe:a9fe', 128],
  ['fd00:42::42', 128],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
]
for (const [network, prefix] of forbiddenRanges) {
  forbidden.addSubnet(network, prefix, isIP(network) === 6 ? 'ipv6' : 'ipv4')
}

/** Networks without IPv4 reach IPv4 addresses through it, spelled in its last 32 bits (RFC 6052). */
const translation = new BlockList()
translation.addSubnet('64:ff9b::', 96, 'ipv6')

/**
 * Whether a name may lead to this address: never to this machine, by none of its addresses. An address that is itself
 * what was granted is not asked about here.
 */
export function mayReach(address: string): boolean {
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return false
  if (family === 6 && translation.check(address, 'ipv6')) return mayReach(lastFourBytes(address))
  const type = family === 6 ? 'ipv6' : 'ipv4'
  return !forbidden.check(address, type) && !ownAddresses().check(address, type)
}

/** Read anew each time: addresses come and go with networks, and a connection costs far more. */
function ownAddresses(): BlockList {
  const own = new BlockList()
  for (const { address, family } of Object.values(networkInterfaces()).flatMap((list) => list ?? [])) {
    own.addAddress(address, family === 'IPv6' ? 'ipv6' : 'ipv4')
  }
  return own
}

/** The IPv4 address an IPv6 address ends in. The URL parser writes every spelling of an address the same way. */
function lastFourBytes(address: string): string {
  const groups = new URL(`http://[${address}]/`).hostname.slice(1, -1).split(':')
  const isShort = groups.at(-1) === ''
  const [high, low] = isShort
    ? [0, 0]
    : [groups.at(-2) || '0', groups.at(-1) ?? '0'].map((group) => Number.parseInt(group, 16))
  const bits = ((high ?? 0) << 16) | (low ?? 0)
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.')
}
