import type { KubeObject } from '@corral/resources'
import { badRequest } from '../errors/api-error.js'

const FIRST = ipNumber('10.96.0.2')
const SIZE = 2 ** 16 - 4

/** Hands out service addresses of 10.96.0.0/16. They are unique and lead nowhere: nothing on one machine routes them. */
export class ClusterIpRange {
  private readonly taken = new Map<string, string>()
  private next = 0

  /** Learns an address from a stored service. */
  learn(service: KubeObject): void {
    const ip = addressOf(service)
    if (ip) this.taken.set(ip, service.metadata?.uid ?? '')
  }

  /** Gives back the address of a removed service. */
  forget(service: KubeObject): void {
    const ip = addressOf(service)
    if (ip && this.taken.get(ip) === (service.metadata?.uid ?? '')) this.taken.delete(ip)
  }

  allocate(wanted: string | undefined): string {
    if (wanted) {
      if (this.taken.has(wanted)) throw badRequest(`the cluster IP ${wanted} is already allocated`)
      return wanted
    }
    for (let tries = 0; tries < SIZE; tries++) {
      const ip = ipText(FIRST + (this.next++ % SIZE))
      if (!this.taken.has(ip)) return ip
    }
    throw badRequest('the range of cluster IPs is full')
  }
}

function addressOf(service: KubeObject): string | undefined {
  const ip = (service as { spec?: { clusterIP?: string } }).spec?.clusterIP
  return ip && ip !== 'None' ? ip : undefined
}

function ipNumber(ip: string): number {
  return ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

function ipText(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')
}
