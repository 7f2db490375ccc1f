import { readFileSync } from 'node:fs'
import type { ArrivalLimit } from './arrival-rate.js'

/** How many descriptors pods may make the cradle hold. What is left belongs to the platform's own work. */
export interface NetworkLimits {
  /** Connections carried at once, for one pod and for all of them. */
  connectionsPerPod: number
  connections: number
  /** Connections a pod gets even when the others together have used up `connections`. */
  connectionsGuaranteed: number
  /** What those guaranteed connections may add to `connections`. */
  connectionsBeyond: number
  /** Listeners opened for names under wildcards, for one pod and for all of them. */
  listenersPerPod: number
  listeners: number
  /** New connections and questions for names of one pod that are looked at. */
  arrivals: { connections: ArrivalLimit; questions: ArrivalLimit }
}

const leastReserved = 128
const mostConnections = 2048
const mostPerPod = 256
/**
 * More than an installation of packages wants that opens a connection for each file. A connection takes up to four
 * questions: both kinds of address, each with the search domain and without.
 */
const arrivals = { connections: { burst: 1000, perSecond: 200 }, questions: { burst: 5000, perSecond: 1000 } }

/**
 * The limits for a process that may hold `openFiles` descriptors. A carried connection costs two, a listener one; a
 * quarter of all is kept for starting, stopping and talking to the platform's main process.
 */
export function networkLimits(openFiles: number): NetworkLimits {
  const reserved = Math.max(leastReserved, Math.floor(openFiles / 4))
  const connections = clamp(Math.floor((openFiles - reserved) / 3), 16, mostConnections)
  const perPod = clamp(Math.floor(connections / 4), 8, mostPerPod)
  return {
    connectionsPerPod: perPod,
    connections,
    connectionsGuaranteed: 4,
    connectionsBeyond: Math.floor(reserved / 8),
    listenersPerPod: perPod,
    listeners: connections,
    arrivals,
  }
}

/** This process's limit on descriptors. Node has raised it to the most it may have when it started. */
export function readOpenFilesLimit(): number {
  const line = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
  const limit = Number(line?.[1])
  return Number.isSafeInteger(limit) ? limit : mostConnections * 4
}

/** What all pods hold together. */
export class ConnectionBudget {
  #connections = 0
  #listeners = 0

  constructor(readonly limits: NetworkLimits) {}

  forPod(): PodBudget {
    const { limits } = this
    let connections = 0
    let listeners = 0
    return {
      takeConnection: () => {
        const { connectionsPerPod, connectionsGuaranteed, connectionsBeyond } = limits
        if (connections >= connectionsPerPod) return 'pod'
        const most = limits.connections + (connections < connectionsGuaranteed ? connectionsBeyond : 0)
        if (this.#connections >= most) return 'node'
        connections++
        this.#connections++
        return 'taken'
      },
      returnConnection: () => {
        connections--
        this.#connections--
      },
      takeListeners: (count) => {
        const fits = listeners + count <= limits.listenersPerPod && this.#listeners + count <= limits.listeners
        if (!fits) return false
        listeners += count
        this.#listeners += count
        return true
      },
      returnListeners: () => {
        this.#listeners -= listeners
        listeners = 0
      },
    }
  }
}

/** One pod's share. */
export interface PodBudget {
  /** `taken`, or whose limit is reached: the pod's own or that of all pods. */
  takeConnection(): 'taken' | 'pod' | 'node'
  returnConnection(): void
  takeListeners(count: number): boolean
  /** All of them: the pod is over. */
  returnListeners(): void
}

const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value))
