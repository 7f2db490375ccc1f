import { connect, isIP, type Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import type { RefusedHost } from '@corral/resources'
import { socketPath } from '../client/socket-path.js'
import type { Destination } from './network-plan.js'
import { mayReach } from './reachable-address.js'

const connectTimeoutMs = 15_000
/** How long a connection may stay without a byte in either direction after it was opened. */
const firstByteMs = 30_000

export interface ForwardPorts {
  addressesOf(name: string): Promise<readonly string[]>
  /** Why a connection to a granted name came to nothing. */
  onFailure(failure: Pick<RefusedHost, 'host' | 'port' | 'reason'>): void
}

/**
 * Carries a connection accepted inside a pod to its destination; any failure resets the pod's side. A connection on
 * which neither side ever says anything is reset as well: it would only hold descriptors.
 */
export function forward(inside: Socket, destination: Destination, ports: ForwardPorts): void {
  inside.pause()
  // Small pieces, such as the words of a model, are passed on as they come, not once the one before was acknowledged.
  inside.setNoDelay(true)
  inside.on('error', () => inside.destroy())
  open(destination, ports).then(
    (outside) => {
      if (inside.destroyed) {
        outside.destroy()
        return
      }
      const silence = setTimeout(() => {
        if (inside.bytesRead === 0 && outside.bytesRead === 0) inside.resetAndDestroy()
      }, firstByteMs)
      outside.on('error', () => inside.destroy())
      inside.on('close', () => {
        clearTimeout(silence)
        outside.destroy()
      })
      outside.on('close', () => inside.destroy())
      inside.pipe(outside)
      outside.pipe(inside)
    },
    (error: unknown) => {
      inside.resetAndDestroy()
      if (error instanceof DialFailure) ports.onFailure(error.failure)
    },
  )
}

class DialFailure extends Error {
  constructor(readonly failure: Pick<RefusedHost, 'host' | 'port' | 'reason'>) {
    super(`${failure.host}: ${failure.reason}`)
  }
}

async function open(destination: Destination, ports: ForwardPorts): Promise<Socket> {
  if (destination.kind === 'service') {
    const { target } = destination
    return await connected(
      'socketPath' in target
        ? connect({ path: socketPath(dirname(target.socketPath), basename(target.socketPath)), allowHalfOpen: true })
        : connect({ ...target, allowHalfOpen: true, noDelay: true }),
    )
  }
  const { host, port, mayBeLoopback } = destination
  const addresses = isIP(host) ? [host] : await ports.addressesOf(host)
  if (addresses.length === 0) throw new DialFailure({ host, port, reason: 'Unresolved' })
  // What is dialled are the addresses that were checked: the name is not looked up a second time.
  const usable = mayBeLoopback ? addresses : addresses.filter(mayReach)
  if (usable.length === 0) throw new DialFailure({ host, port, reason: 'ForbiddenAddress' })
  for (const address of usable) {
    try {
      return await connected(connect({ host: address, port, allowHalfOpen: true, noDelay: true }))
    } catch {
      // The next address may answer.
    }
  }
  throw new DialFailure({ host, port, reason: 'Unreachable' })
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
