import { lookup } from 'node:dns/promises'
import { BlockList, connect, isIP, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Destination } from './network-plan.js'

const connectTimeoutMs = 15_000

/**
 * Addresses a mere name must not lead to: loopback, link-local (the metadata of clouds) and what is nobody's. Private
 * networks are open to a name that was granted: package mirrors live there.
 */
const forbidden = new BlockList()
forbidden.addSubnet('0.0.0.0', 8)
forbidden.addSubnet('127.0.0.0', 8)
forbidden.addSubnet('169.254.0.0', 16)
forbidden.addSubnet('198.18.0.0', 15)
forbidden.addSubnet('100.64.0.0', 10)
forbidden.addSubnet('224.0.0.0', 3)
forbidden.addAddress('::', 'ipv6')
forbidden.addAddress('::1', 'ipv6')
forbidden.addSubnet('fe80::', 10, 'ipv6')
forbidden.addSubnet('ff00::', 8, 'ipv6')

/**
 * Whether a name may lead to this address: never to this machine, by none of its addresses. What an operator writes as
 * an address is not asked here.
 */
export function mayReach(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return false
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

/** Carries a connection accepted inside a pod to its destination; any failure resets the pod's side. */
export function forward(inside: Socket, destination: Destination): void {
  inside.pause()
  inside.on('error', () => inside.destroy())
  open(destination).then(
    (outside) => {
      if (inside.destroyed) {
        outside.destroy()
        return
      }
      outside.on('error', () => inside.destroy())
      inside.on('close', () => outside.destroy())
      outside.on('close', () => inside.destroy())
      inside.pipe(outside)
      outside.pipe(inside)
    },
    () => inside.resetAndDestroy(),
  )
}

async function open(destination: Destination): Promise<Socket> {
  if (destination.kind === 'service') {
    const { target } = destination
    return await connected(
      'socketPath' in target
        ? connect({ path: target.socketPath, allowHalfOpen: true })
        : connect({ ...target, allowHalfOpen: true }),
    )
  }
  const { host, port, mayBeLoopback } = destination
  const addresses = isIP(host) ? [host] : (await lookup(host, { all: true })).map(({ address }) => address)
  const usable = mayBeLoopback ? addresses : addresses.filter(mayReach)
  let failure: unknown = new Error(`${host} leads to no address a pod may reach`)
  for (const address of usable) {
    try {
      return await connected(connect({ host: address, port, allowHalfOpen: true }))
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

function connected(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.setTimeout(connectTimeoutMs, () => socket.destroy(new Error('connect timed out')))
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.setTimeout(0)
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
